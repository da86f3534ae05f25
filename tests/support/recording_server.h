// SPDX-License-Identifier: Apache-2.0
// RecordingServer: a real gRPC server with one unary call: keeps what it is sent; how it answers is
// the test's choice. A service of a protocol derives from it.
//
// Thread: any; internally locked.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace flamefleet {

template <typename Service, typename Request>
class RecordingServer : public Service {
 public:
  // Called with the number of the call, from 0.
  using Answer = std::function<grpc::Status(int, grpc::ServerContext&)>;

  static grpc::Status AlwaysOk(int, grpc::ServerContext&) { return {}; }

  explicit RecordingServer(Answer answer = AlwaysOk,
                           const std::shared_ptr<grpc::ServerCredentials>& credentials =
                               grpc::InsecureServerCredentials(),
                           int max_message_bytes = 64 << 20)
      : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(max_message_bytes);
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }
  ~RecordingServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  uint16_t port() const { return static_cast<uint16_t>(port_); }
  std::string Url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  std::vector<Request> Requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Of the last call; empty: it had none.
  std::string LastHeader(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = headers_.find(name);
    return found == headers_.end() ? std::string() : found->second;
  }

 protected:
  grpc::Status Take(grpc::ServerContext* context, const Request& request) {
    int number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = static_cast<int>(requests_.size());
      requests_.push_back(request);
      headers_.clear();
      for (const auto& [name, value] : context->client_metadata())
        headers_.emplace(std::string(name.data(), name.size()),
                         std::string(value.data(), value.size()));
    }
    return answer_(number, *context);
  }

 private:
  const Answer answer_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;               // guarded by mutex_
  std::map<std::string, std::string> headers_;  // guarded by mutex_
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace flamefleet
