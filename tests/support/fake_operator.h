// SPDX-License-Identifier: Apache-2.0
// FakeOperator: the operator's end of the control channel on a real gRPC server: keeps what agents
// say and sends what the test says.
//
// Thread: any; internally locked. One agent at a time.
#pragma once

#include <google/protobuf/text_format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "proto/fleet/control.grpc.pb.h"
#include "tests/support/channel_files.h"

namespace flamefleet {

class FakeOperator final : public fleet::v1alpha1::FleetControl::Service {
 public:
  using AgentMessage = fleet::v1alpha1::AgentMessage;
  using OperatorMessage = fleet::v1alpha1::OperatorMessage;

  // `snapshot` (text format of an OperatorMessage) is sent to each agent after its Hello.
  FakeOperator(const ChannelFiles& files, const std::string& snapshot, int port = 0)
      : snapshot_(Parse(snapshot)) {
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs = {{files.serving().key, files.serving().certificate}};
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::SslServerCredentials(tls),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }
  ~FakeOperator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  void Send(const std::string& message) {
    const std::lock_guard lock(mutex_);
    if (stream_ != nullptr) stream_->Write(Parse(message));
  }

  std::vector<AgentMessage> Messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  int Hellos() const {
    int count = 0;
    for (const AgentMessage& message : Messages())
      count += message.has_hello();
    return count;
  }
  // "Bearer TOKEN" of each connection.
  std::vector<std::string> Authorizations() const {
    const std::lock_guard lock(mutex_);
    return authorizations_;
  }
  uint64_t LastAck() const {
    uint64_t version = 0;
    for (const AgentMessage& message : Messages()) {
      if (message.has_ack()) version = message.ack().version();
    }
    return version;
  }
  std::string LastRenewal() const {
    std::string token;
    for (const AgentMessage& message : Messages()) {
      if (message.has_renewal()) token = message.renewal().token();
    }
    return token;
  }
  fleet::v1alpha1::Report LastReport() const {
    fleet::v1alpha1::Report report;
    for (const AgentMessage& message : Messages()) {
      if (message.has_report()) report = message.report();
    }
    return report;
  }

 private:
  using Stream = grpc::ServerReaderWriter<OperatorMessage, AgentMessage>;

  static OperatorMessage Parse(const std::string& text) {
    OperatorMessage message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
    return message;
  }

  grpc::Status Connect(grpc::ServerContext* context, Stream* stream) override {
    const auto [first, last] = context->client_metadata().equal_range("authorization");
    for (auto value = first; value != last; ++value) {
      const std::lock_guard lock(mutex_);
      authorizations_.emplace_back(value->second.data(), value->second.size());
    }
    for (AgentMessage message; stream->Read(&message);) {
      const std::lock_guard lock(mutex_);
      messages_.push_back(message);
      if (!message.has_hello()) continue;
      stream_ = stream;
      stream->Write(snapshot_);
    }
    const std::lock_guard lock(mutex_);
    stream_ = nullptr;
    return grpc::Status::OK;
  }

  const OperatorMessage snapshot_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<AgentMessage> messages_;       // guarded by mutex_
  std::vector<std::string> authorizations_;  // guarded by mutex_
  Stream* stream_ = nullptr;                 // guarded by mutex_
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace flamefleet
