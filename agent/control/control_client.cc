// SPDX-License-Identifier: Apache-2.0
#include "agent/control/control_client.h"

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <thread>
#include <utility>

#include "base/backoff.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/thread.h"
#include "proto/fleet/control.grpc.pb.h"

namespace flamefleet::agent {
namespace {

namespace proto = fleet::v1alpha1;
using Stream = grpc::ClientReaderWriter<proto::AgentMessage, proto::OperatorMessage>;

constexpr std::chrono::seconds kReportInterval{5};
// Changes this close together go into one report.
constexpr std::chrono::milliseconds kReportPause{300};
// Thousands of agents lose the same operator at the same moment: the first wait is 1 to 5 s, the
// longest 5 to 25 s.
constexpr std::chrono::seconds kFirstBackoff{1};
constexpr std::chrono::seconds kMaxBackoff{5};
constexpr double kJitter = 4.0;
// A connection whose other end vanished is noticed after the sum of both.
constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
// An assignment of 500 pods is about 1 MiB.
constexpr int kMaxMessageBytes = 16 << 20;

constexpr size_t kMaxTokenBytes = 16 << 10;
constexpr size_t kMaxTrustBytes = 256 << 10;

// The kubelet replaces both files while we run: they are read each time that they are used.
Result<std::string> ReadToken(const std::string& file) {
  FF_ASSIGN_OR_RETURN(std::string token, ReadFile(file, kMaxTokenBytes));
  while (!token.empty() && token.back() <= ' ')
    token.pop_back();
  if (token.empty()) return InvalidArgumentError("read the token " + file + ": it is empty");
  return token;
}

// A channel of its own for each connection: it trusts what the file says by then.
Result<std::shared_ptr<grpc::Channel>> OpenChannel(const ControlOptions& options) {
  FF_ASSIGN_OR_RETURN(const std::string trusted, ReadFile(options.trust_file, kMaxTrustBytes));
  // gRPC would trust every public authority instead.
  if (trusted.empty()) return InvalidArgumentError("read " + options.trust_file + ": it is empty");
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = trusted;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return grpc::CreateCustomChannel(options.operator_address, grpc::SslCredentials(tls), arguments);
}

// One stream, from Hello to its end. Writes come from two threads.
class Session {
 public:
  Session(const std::shared_ptr<grpc::Channel>& channel, const std::string& token,
          const std::stop_token& stop)
      : on_stop_(stop, [this] { context_.TryCancel(); }),
        stub_(proto::FleetControl::NewStub(channel)) {
    context_.AddMetadata("authorization", "Bearer " + token);
    stream_ = stub_->Connect(&context_);
  }

  bool Write(const proto::AgentMessage& message) {
    const std::lock_guard lock(write_mutex_);
    return stream_->Write(message);
  }
  bool Read(proto::OperatorMessage* message) { return stream_->Read(message); }
  void Cancel() { context_.TryCancel(); }
  // After the last read; the reason of the end.
  grpc::Status Finish() { return stream_->Finish(); }

 private:
  grpc::ClientContext context_;
  std::stop_callback<std::function<void()>> on_stop_;
  std::unique_ptr<proto::FleetControl::Stub> stub_;
  std::unique_ptr<Stream> stream_;
  std::mutex write_mutex_;
};

}  // namespace

class ControlClient::Impl {
 public:
  Impl(ControlOptions options, CollectionHealthBook* health, Metrics* metrics, Apply apply,
       MakeReport report)
      : options_(std::move(options)),
        health_(health),
        apply_(std::move(apply)),
        report_(std::move(report)),
        connected_(metrics->Gauge("flamefleet_agent_control_connected",
                                  "1 while the operator's stream is up.")),
        reconnects_(metrics->Counter("flamefleet_agent_control_disconnects_total",
                                     "Streams to the operator that ended.")),
        thread_(StartThread("ff-control", [this](const std::stop_token& stop) { Run(stop); })) {}

 private:
  void Run(const std::stop_token& stop);
  // Until the stream ends; true if something was taken into force.
  bool RunSession(const std::stop_token& stop, std::string* why_ended);
  bool RunStream(Session& session, const std::string& token, std::string* why_ended);
  bool ReadMessages(Session& session, std::string* why_ended);
  void ReportUntilStopped(Session& session, std::string token, const std::stop_token& stop);

  const ControlOptions options_;
  CollectionHealthBook* const health_;
  const Apply apply_;
  const MakeReport report_;
  GaugeMetric connected_;
  CounterMetric reconnects_;
  std::jthread thread_;  // last: joined first
};

void ControlClient::Impl::Run(const std::stop_token& stop) {
  Backoff backoff(kFirstBackoff, kMaxBackoff, kJitter);
  std::string logged;
  while (!stop.stop_requested()) {
    std::string why_ended;
    if (RunSession(stop, &why_ended)) {
      backoff.Reset();
      logged.clear();
    }
    if (stop.stop_requested()) return;
    reconnects_.Increment();
    if (why_ended != logged) {
      Log(LogLevel::kWarn, "operator is not connected, going on with the last assignment",
          {{"operator", options_.operator_address}, {"error", why_ended}});
      logged = why_ended;
    }
    WaitForStop(stop, backoff.Next());
  }
}

bool ControlClient::Impl::RunSession(const std::stop_token& stop, std::string* why_ended) {
  const Result<std::string> token = ReadToken(options_.token_file);
  const auto channel = token.ok() ? OpenChannel(options_) : token.status();
  if (!channel.ok()) {
    *why_ended = ErrorMessage(channel.status());
    return false;
  }
  Session session(*channel, *token, stop);
  return RunStream(session, *token, why_ended);
}

bool ControlClient::Impl::RunStream(Session& session, const std::string& token,
                                    std::string* why_ended) {
  proto::AgentMessage hello;
  hello.mutable_hello()->set_node(options_.node);
  hello.mutable_hello()->set_pool(options_.pool);
  hello.mutable_hello()->set_pod_name(options_.pod_name);
  hello.mutable_hello()->set_agent_version(FF_VERSION);
  session.Write(hello);

  bool any = false;
  {
    const std::jthread reporter = StartThread(
        "ff-report", [&](const std::stop_token& end) { ReportUntilStopped(session, token, end); });
    any = ReadMessages(session, why_ended);
    session.Cancel();
  }
  connected_.Set(0);
  const grpc::Status status = session.Finish();
  if (why_ended->empty()) {
    *why_ended = status.ok() ? "the operator ended the stream" : status.error_message();
  }
  return any;
}

bool ControlClient::Impl::ReadMessages(Session& session, std::string* why_ended) {
  bool any = false;
  for (proto::OperatorMessage message; session.Read(&message);) {
    const Status applied = apply_(message);
    if (!applied.ok()) {
      *why_ended = ErrorMessage(applied);
      return any;
    }
    if (!any) {
      connected_.Set(1);
      Log(LogLevel::kInfo, "operator is connected", {{"operator", options_.operator_address}});
    }
    any = true;
    proto::AgentMessage ack;
    ack.mutable_ack()->set_version(message.has_snapshot() ? message.snapshot().version()
                                                          : message.delta().version());
    session.Write(ack);
  }
  return any;
}

void ControlClient::Impl::ReportUntilStopped(Session& session, std::string token,
                                             const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    // A token that cannot be read now is missed when the operator ends the stream, not earlier.
    Result<std::string> newer = ReadToken(options_.token_file);
    if (newer.ok() && *newer != token) {
      token = *std::move(newer);
      proto::AgentMessage renewal;
      renewal.mutable_renewal()->set_token(token);
      if (!session.Write(renewal)) return;
    }
    proto::AgentMessage message;
    *message.mutable_report() = report_();
    if (!session.Write(message)) return;
    if (WaitForStop(stop, kReportPause)) return;
    health_->AwaitChange(stop, kReportInterval - kReportPause);
  }
}

ControlClient::ControlClient(const ControlOptions& options, CollectionHealthBook* health,
                             Metrics* metrics, Apply apply, MakeReport report)
    : impl_(std::make_unique<Impl>(options, health, metrics, std::move(apply), std::move(report))) {
}

ControlClient::~ControlClient() = default;

}  // namespace flamefleet::agent
