// SPDX-License-Identifier: Apache-2.0
// A ControlServer on a socket, and agents of gRPC's own client that talk to it. A token names the
// node that it is good for: "n1"; ControlServerTest says what else there is.
//
// Thread: one; an Agent may have a thread of its own.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "operator/control/control_server.h"
#include "proto/fleet/control.grpc.pb.h"
#include "tests/fakes/fake_clock.h"
#include "tests/support/channel_files.h"

namespace flamefleet::control {

namespace pb = fleet::v1alpha1;

inline constexpr std::chrono::seconds kDeadline{60};

// One agent. Every call fails rather than hang: the stream has a deadline.
class Agent {
 public:
  using Credentials = std::shared_ptr<grpc::ChannelCredentials>;

  Agent(int port, const Credentials& credentials)
      : stub_(pb::FleetControl::NewStub(
            grpc::CreateChannel("127.0.0.1:" + std::to_string(port), credentials))) {
    context_.set_deadline(std::chrono::system_clock::now() + kDeadline);
  }
  ~Agent() {
    context_.TryCancel();
    if (!finished_ && stream_ != nullptr) stream_->Finish();
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // The header "authorization"; by default "Bearer NODE" with the node of Hello. Empty: none.
  Agent& Authorize(const std::string& value) {
    authorization_ = value;
    return *this;
  }
  Agent& Open() {
    if (stream_ != nullptr) return *this;
    const std::string authorization = authorization_.value_or("Bearer n1");
    if (!authorization.empty()) context_.AddMetadata("authorization", authorization);
    stream_ = stub_->Connect(&context_);
    return *this;
  }
  Agent& Hello(const std::string& node, const std::string& pool = "default") {
    if (!authorization_) authorization_ = "Bearer " + node;
    pb::AgentMessage message;
    message.mutable_hello()->set_node(node);
    message.mutable_hello()->set_pool(pool);
    Write(message);
    return *this;
  }
  void Ack(uint64_t version) {
    pb::AgentMessage message;
    message.mutable_ack()->set_version(version);
    Write(message);
  }
  void Report(const pb::Report& report) {
    pb::AgentMessage message;
    *message.mutable_report() = report;
    Write(message);
  }
  void Renew(const std::string& token) {
    pb::AgentMessage message;
    message.mutable_renewal()->set_token(token);
    Write(message);
  }
  pb::OperatorMessage Read() {
    pb::OperatorMessage message;
    EXPECT_TRUE(Open().stream_->Read(&message)) << "the stream ended";
    return message;
  }
  // Reads to the end.
  grpc::Status Finish() {
    pb::OperatorMessage message;
    while (Open().stream_->Read(&message)) {
    }
    finished_ = true;
    return stream_->Finish();
  }
  void CloseWriting() { stream_->WritesDone(); }

 private:
  void Write(const pb::AgentMessage& message) { Open().stream_->Write(message); }

  std::unique_ptr<pb::FleetControl::Stub> stub_;
  grpc::ClientContext context_;
  std::optional<std::string> authorization_;
  std::unique_ptr<grpc::ClientReaderWriter<pb::AgentMessage, pb::OperatorMessage>> stream_;
  bool finished_ = false;
};

inline Agent::Credentials Trust(const std::string& authorities) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = authorities;
  return grpc::SslCredentials(tls);
}

class ControlServerTest : public testing::Test {
 protected:
  static constexpr int64_t kTokenLifeNs = 3600 * kNanosPerSecond;

  ControlServerTest()
      : server_(
            clock_, metrics_,
            [this](const std::string& token, const std::stop_token&) { return Judge(token); },
            [this](const std::string& node) { OnChange(node); }) {
    server_.SetConfig("default",
                      {.sampling_frequency_hz = 19, .backends = {{"main", "http://store:4040"}}});
    server_.SetCertificate(files_.serving());
    const Status status = server_.Listen("127.0.0.1:0");
    EXPECT_TRUE(status.ok()) << status;
  }

  // "bad" is refused, "unknown" cannot be judged; "n1/2" is another token of n1. A token is good
  // for kTokenLifeNs from now.
  security::Admission Judge(const std::string& token) {
    const security::Admission admission = JudgeAt(token, clock_.WallNanos());
    ++judged_;
    return admission;
  }
  static security::Admission JudgeAt(const std::string& token, int64_t now_ns) {
    if (token.empty() || token == "bad") {
      return {{StatusCode::kUnauthenticated, "told by the test"},
              token.empty() ? security::refusal::kNoToken : security::refusal::kTokenRefused,
              {}};
    }
    if (token == "unknown") {
      return {{StatusCode::kUnavailable, "no API server"}, security::refusal::kReviewFailed, {}};
    }
    return {OkStatus(),
            "",
            {.node = token.substr(0, token.find('/')), .expires_at_ns = now_ns + kTokenLifeNs}};
  }

  static plan::NodeAssignment Pods(const std::vector<std::string>& uids) {
    plan::NodeAssignment assignment;
    for (const std::string& uid : uids)
      assignment[uid] = {.uid = uid, .ns = "shop", .name = uid};
    return assignment;
  }

  void OnChange(const std::string&) {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  // Waits until the report of a node is as wanted.
  testing::AssertionResult Await(const std::string& node,
                                 const std::function<bool(const plan::NodeReport&)>& wanted) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, kDeadline, [&] {
      const auto report = server_.ReportOf(node);
      return report != nullptr && wanted(*report);
    });
    return came ? testing::AssertionSuccess()
                : testing::AssertionFailure() << "node " << node << " did not get there";
  }

  ChannelFiles files_;
  const Agent::Credentials trust_ = Trust(files_.trusted());
  FakeClock clock_;
  Metrics metrics_;
  std::atomic<int> judged_ = 0;  // tokens
  std::mutex mutex_;
  std::condition_variable changed_;
  ControlServer server_;
};

inline std::vector<std::string> Uids(
    const google::protobuf::RepeatedPtrField<pb::PodAssignment>& pods) {
  std::vector<std::string> uids;
  for (const pb::PodAssignment& pod : pods)
    uids.push_back(pod.uid());
  return uids;
}

}  // namespace flamefleet::control
