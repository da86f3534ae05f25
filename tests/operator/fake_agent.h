// SPDX-License-Identifier: Apache-2.0
// FakeAgent: a real gRPC client of the control channel that keeps what it is assigned and reports
// what a test tells it to, as an agent would.
//
// Thread: the test's; one thread inside. Errors: a message that breaks the protocol fails the test.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "proto/fleet/control.grpc.pb.h"

namespace flamefleet {

class FakeAgent {
 public:
  using PodAssignment = fleet::v1alpha1::PodAssignment;
  using Report = fleet::v1alpha1::Report;

  // How the operator is reached and told who we are.
  struct Access {
    std::string address;
    std::string name;     // that its certificate is for
    std::string trusted;  // PEM certificates
    std::string token;
  };

  // Connects, again and again until it is destroyed, as agents do.
  FakeAgent(const Access& access, std::string node, std::string pool);
  ~FakeAgent();
  FakeAgent(const FakeAgent&) = delete;
  FakeAgent& operator=(const FakeAgent&) = delete;

  // By pod name, serialised so that two can be compared.
  std::map<std::string, std::string> Assigned() const;
  bool Has(const std::string& pod) const;
  PodAssignment Pod(const std::string& pod) const;
  fleet::v1alpha1::AgentConfig Config() const;
  int snapshots() const;
  int deltas() const;

  // Reports each collection of the assignment as delivering, now and whenever it changes, but those
  // of `failing_pod` as failing with this reason.
  void ReportAllDelivering(const std::string& failing_pod = "", const std::string& reason = "");

 private:
  using Stub = fleet::v1alpha1::FleetControl::Stub;
  using Stream =
      grpc::ClientReaderWriter<fleet::v1alpha1::AgentMessage, fleet::v1alpha1::OperatorMessage>;

  void Run(const std::stop_token& stop);
  void ServeStream(Stream& stream);
  void Handle(const fleet::v1alpha1::OperatorMessage& message);
  Report BuildReport() const;

  const std::string token_;
  const std::string node_;
  const std::string pool_;
  const std::unique_ptr<Stub> stub_;
  mutable Mutex mutex_;
  std::unique_ptr<grpc::ClientContext> context_;  // of the stream; guarded by mutex_
  Stream* stream_ = nullptr;                      // guarded by mutex_
  std::map<std::string, PodAssignment> pods_;     // by UID; guarded by mutex_
  fleet::v1alpha1::AgentConfig config_;
  uint64_t version_ = 0;
  int snapshots_ = 0;
  int deltas_ = 0;
  bool reporting_ = false;
  std::string failing_pod_;
  std::string failing_reason_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flamefleet
