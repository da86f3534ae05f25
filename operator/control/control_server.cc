// SPDX-License-Identifier: Apache-2.0
#include "operator/control/control_server.h"

#include <grpcpp/grpcpp.h>

#include <thread>
#include <utility>

#include "base/queue.h"
#include "base/thread.h"
#include "operator/control/agent_hub.h"
#include "operator/control/server_credentials.h"

namespace flamefleet::control {
namespace {

// A node that vanished without a word is noticed within their sum.
constexpr int kKeepaliveTimeMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kMinPingIntervalMs = 10'000;  // of agents
// A connection that never becomes one of TLS.
constexpr int kHandshakeTimeoutMs = 20'000;
// An agent needs one; while it connects again, two.
constexpr int kMaxStreamsPerConnection = 4;
constexpr std::chrono::seconds kShutdownGrace{2};
constexpr std::chrono::seconds kSweepInterval{1};
constexpr std::chrono::hours kIdleWait{1};

// The bearer token of a call; empty when there is none.
std::string TokenOf(const grpc::CallbackServerContext& context) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return "";
  const std::string_view value(found->second.data(), found->second.size());
  return value.starts_with(kScheme) ? std::string(value.substr(kScheme.size())) : "";
}

}  // namespace

class ControlServer::Impl final : public pb::FleetControl::CallbackService {
 public:
  Impl(const Clock& clock, Metrics& metrics, security::Authenticate authenticate,
       ChangeHandler on_change)
      : authenticate_(std::move(authenticate)),
        hub_(clock, metrics, std::move(on_change),
             [this](const AgentHub::StreamPtr& stream, const std::string& token) {
               Submit(stream, token);
             }) {}
  ~Impl() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();
  }

  AgentHub& hub() { return hub_; }
  ServerCertificate& certificate() { return certificate_; }
  int port() const { return port_; }

  Status Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address.starts_with(':') ? "[::]" + address : address,
                             NewServerCredentials(certificate_), &port_);
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               kMinPingIntervalMs);
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreamsPerConnection);
    for (int i = 0; i < kReviewers; ++i) {
      threads_.push_back(StartThread("review-" + std::to_string(i),
                                     [this](const std::stop_token& stop) { ReviewUntil(stop); }));
    }
    threads_.push_back(StartThread("sweep", [this](const std::stop_token& stop) {
      while (!WaitForStop(stop, kSweepInterval))
        hub_.Sweep();
    }));
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0)
      return UnavailableError("listen for agents on " + address + ": not possible");
    return OkStatus();
  }

  // Called by gRPC for each new stream.
  grpc::ServerBidiReactor<pb::AgentMessage, pb::OperatorMessage>* Connect(
      grpc::CallbackServerContext* context) override {
    const AgentHub::StreamPtr stream = hub_.Open(context->peer());
    Submit(stream, TokenOf(*context));
    return stream.get();
  }

 private:
  struct Review {
    AgentHub::StreamPtr stream;
    std::string token;
  };

  void Submit(const AgentHub::StreamPtr& stream, const std::string& token) {
    Review review = {stream, token};
    if (hub_.streams() <= AgentHub::kMaxStreams && reviews_.TryPush(review)) return;
    hub_.Settle(*stream, {{StatusCode::kResourceExhausted, "too many agents at once"},
                          security::refusal::kTooManyAgents,
                          {}});
  }

  void ReviewUntil(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const std::optional<Review> review = reviews_.Pop(stop, kIdleWait);
      if (review) hub_.Settle(*review->stream, authenticate_(review->token, stop));
    }
  }

  const security::Authenticate authenticate_;
  ServerCertificate certificate_;
  BoundedQueue<Review> reviews_{AgentHub::kMaxStreams};
  AgentHub hub_;
  int port_ = 0;  // constant after Listen
  std::vector<std::jthread> threads_;
  std::unique_ptr<grpc::Server> server_;  // last: its end ends all callbacks
};

ControlServer::ControlServer(const Clock& clock, Metrics& metrics,
                             security::Authenticate authenticate, ChangeHandler on_change)
    : impl_(std::make_unique<Impl>(clock, metrics, std::move(authenticate), std::move(on_change))) {
}

ControlServer::~ControlServer() = default;

void ControlServer::SetCertificate(CertificatePair pair) {
  impl_->certificate().Set(std::move(pair));
}

Status ControlServer::Listen(const std::string& address) {
  return impl_->Listen(address);
}

int ControlServer::port() const {
  return impl_->port();
}

void ControlServer::SetConfig(const std::string& pool, plan::AgentConfig config) {
  impl_->hub().SetConfig(pool, std::move(config));
}

std::shared_ptr<const plan::NodeAssignment> ControlServer::SetAssignment(
    const std::string& node, plan::NodeAssignment assignment, const std::string& pool) {
  return impl_->hub().SetAssignment(node, std::move(assignment), pool);
}

std::shared_ptr<const plan::NodeReport> ControlServer::ReportOf(const std::string& node) const {
  return impl_->hub().ReportOf(node);
}

std::vector<std::string> ControlServer::Nodes() const {
  return impl_->hub().Nodes();
}

}  // namespace flamefleet::control
