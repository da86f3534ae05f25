// SPDX-License-Identifier: Apache-2.0
#include "operator/control/control_server.h"

#include <grpcpp/grpcpp.h>

#include <map>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "operator/control/agent_stream.h"
#include "operator/control/convert.h"

namespace flamefleet::control {
namespace {

constexpr size_t kMaxNameBytes = 253;  // of nodes and pools, as Kubernetes has it
// A node that vanished without a word is noticed within their sum.
constexpr int kKeepaliveTimeMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
constexpr int kMinPingIntervalMs = 10'000;  // of agents
constexpr std::chrono::seconds kShutdownGrace{2};

grpc::Status Refuse(const std::string& message) {
  return {grpc::StatusCode::INVALID_ARGUMENT, message};
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes;
}

}  // namespace

class ControlServer::Impl final : public pb::FleetControl::CallbackService,
                                  public AgentStream::Owner {
 public:
  Impl(const Clock& clock, Metrics& metrics, ChangeHandler on_change)
      : clock_(clock),
        on_change_(std::move(on_change)),
        connected_(metrics.Gauge("flamefleet_operator_agents_connected",
                                 "Agents with an open control stream.")),
        snapshots_(
            metrics.Counter("flamefleet_operator_assignments_sent_total",
                            "Assignments sent to agents, whole (snapshot) or changes (delta).",
                            {{"kind", "snapshot"}})),
        deltas_(metrics.Counter("flamefleet_operator_assignments_sent_total",
                                "Assignments sent to agents, whole (snapshot) or changes (delta).",
                                {{"kind", "delta"}})),
        protocol_errors_(
            metrics.Counter("flamefleet_operator_control_protocol_errors_total",
                            "Control streams ended because the agent broke the protocol.")) {}

  ~Impl() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();
  }

  Status Listen(const std::string& address) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address.starts_with(':') ? "[::]" + address : address,
                             grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                               kMinPingIntervalMs);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0)
      return UnavailableError("listen for agents on " + address + ": not possible");
    return OkStatus();
  }

  int port() const { return port_; }

  // Called by gRPC for each new stream.
  grpc::ServerBidiReactor<pb::AgentMessage, pb::OperatorMessage>* Connect(
      grpc::CallbackServerContext*) override {
    auto stream = std::make_shared<AgentStream>(*this);
    AgentStream* const raw = stream.get();
    {
      const MutexLock lock(&mutex_);
      streams_.emplace(raw, std::move(stream));
    }
    raw->Begin();
    return raw;
  }

  void SetConfig(const std::string& pool, plan::AgentConfig config) {
    std::vector<std::shared_ptr<AgentStream>> streams;
    {
      const MutexLock lock(&mutex_);
      ConfigPtr& current = configs_[pool];
      if (current != nullptr && *current == config) return;
      current = std::make_shared<const plan::AgentConfig>(std::move(config));
      for (const auto& [raw, stream] : streams_) {
        if (raw->pool == pool) streams.push_back(stream);
      }
    }
    for (const auto& stream : streams)
      Pump(*stream);
  }

  void SetAssignment(const std::string& node, plan::NodeAssignment assignment) {
    std::shared_ptr<AgentStream> stream;
    {
      const MutexLock lock(&mutex_);
      if (assignment.empty()) {
        assignments_.erase(node);
      } else {
        assignments_[node] = std::make_shared<const plan::NodeAssignment>(std::move(assignment));
      }
      stream = StreamOf(node);
    }
    if (stream != nullptr) Pump(*stream);
  }

  std::shared_ptr<const plan::NodeReport> ReportOf(const std::string& node) const {
    const MutexLock lock(&mutex_);
    const auto found = nodes_.find(node);
    return found == nodes_.end() ? nullptr : found->second.report;
  }

  std::vector<std::string> Nodes() const {
    const MutexLock lock(&mutex_);
    std::vector<std::string> names;
    names.reserve(nodes_.size());
    for (const auto& [name, node] : nodes_)
      names.push_back(name);
    return names;
  }

 private:
  struct Node {
    std::shared_ptr<const plan::NodeReport> report;  // never null
    AgentStream* stream = nullptr;                   // that speaks for the node; nullptr: none
  };

  void OnMessage(AgentStream& stream, const pb::AgentMessage& message) override {
    grpc::Status status;
    switch (message.message_case()) {
      case pb::AgentMessage::kHello:
        status = OnHello(stream, message.hello());
        break;
      case pb::AgentMessage::kAck:
        status = OnAck(stream, message.ack());
        break;
      case pb::AgentMessage::kReport:
        status = OnReport(stream, message.report());
        break;
      case pb::AgentMessage::MESSAGE_NOT_SET:
        break;  // of a newer agent: not for us
    }
    if (status.ok()) return;
    protocol_errors_.Increment();
    Log(LogLevel::kWarn, "control stream refused",
        {{"node", NodeOf(stream)}, {"error", status.error_message()}});
    End(stream, status);
  }

  grpc::Status OnHello(AgentStream& stream, const pb::Hello& hello) {
    if (!IsName(hello.node()) || !IsName(hello.pool()))
      return Refuse("Hello: node and pool must be names");
    std::shared_ptr<AgentStream> older;
    {
      const MutexLock lock(&mutex_);
      if (stream.ended) return grpc::Status::OK;
      if (!stream.node.empty()) return Refuse("Hello: only the first message may be one");
      ForgetOldNodes();
      older = StreamOf(hello.node());
      stream.node = hello.node();
      stream.pool = hello.pool();
      Node& node = nodes_[hello.node()];
      node.stream = &stream;
      ChangeReport(node, [&](plan::NodeReport& report) {
        report.pool = hello.pool();
        report.connected = true;
        report.disconnected_since_ns = 0;
      });
      CountConnected();
    }
    Log(LogLevel::kInfo, "agent connected",
        {{"node", hello.node()},
         {"pool", hello.pool()},
         {"pod", hello.pod_name()},
         {"version", hello.agent_version()}});
    if (older != nullptr)
      End(*older, {grpc::StatusCode::ABORTED, "a newer stream of this node took over"});
    on_change_(hello.node());
    Pump(stream);
    return grpc::Status::OK;
  }

  grpc::Status OnAck(AgentStream& stream, const pb::Ack& ack) {
    const MutexLock lock(&mutex_);
    const Status status = stream.outbox.Acknowledge(ack.version());
    return status.ok() ? grpc::Status::OK : Refuse(ErrorMessage(status));
  }

  grpc::Status OnReport(AgentStream& stream, const pb::Report& report) {
    std::string name;
    {
      const MutexLock lock(&mutex_);
      if (stream.node.empty()) return Refuse("the first message must be Hello");
      const auto node = nodes_.find(stream.node);
      if (node == nodes_.end() || node->second.stream != &stream)
        return grpc::Status::OK;  // another one speaks for it
      name = stream.node;
      ChangeReport(node->second, [&](plan::NodeReport& to) { FromProto(report, to); });
    }
    on_change_(name);
    return grpc::Status::OK;
  }

  void OnReadEnd(AgentStream& stream) override { End(stream, grpc::Status::OK); }

  void OnWritten(AgentStream& stream, bool ok) override {
    bool ended = false;
    {
      const MutexLock lock(&mutex_);
      stream.writing = false;
      ended = stream.ended;
    }
    if (ended) {
      stream.Finish(stream.end_status);
    } else if (ok) {
      Pump(stream);  // what came meanwhile
    } else {
      End(stream, {grpc::StatusCode::UNAVAILABLE, "the stream broke"});
    }
  }

  void OnGone(AgentStream& stream) override {
    std::shared_ptr<AgentStream> last;  // destroyed after the lock is released
    const MutexLock lock(&mutex_);
    const auto found = streams_.find(&stream);
    last = std::move(found->second);
    streams_.erase(found);
  }

  // Sends the next message, unless one is on its way. gRPC may call back from within StartWrite and
  // Finish, so neither is called with the lock held; `writing` and `ended` keep them apart.
  void Pump(AgentStream& stream) {
    {
      const MutexLock lock(&mutex_);
      if (stream.node.empty() || stream.writing || stream.ended) return;
      const auto config = configs_.find(stream.pool);
      if (config == configs_.end()) return;
      const auto assignment = assignments_.find(stream.node);
      if (!stream.outbox.Next(config->second,
                              assignment == assignments_.end() ? nothing_ : assignment->second,
                              stream.out)) {
        return;
      }
      stream.writing = true;
    }
    (stream.out.has_snapshot() ? snapshots_ : deltas_).Increment();
    stream.StartWrite(&stream.out);
  }

  void End(AgentStream& stream, const grpc::Status& status) {
    std::string gone;  // the node that lost its agent
    bool writing = false;
    {
      const MutexLock lock(&mutex_);
      if (stream.ended) return;
      stream.ended = true;
      stream.end_status = status;
      writing = stream.writing;
      const auto node = nodes_.find(stream.node);
      if (node != nodes_.end() && node->second.stream == &stream) {
        gone = stream.node;
        node->second.stream = nullptr;
        ChangeReport(node->second, [&](plan::NodeReport& report) {
          report.connected = false;
          report.disconnected_since_ns = clock_.WallNanos();
        });
      }
      CountConnected();
    }
    if (!gone.empty()) {
      Log(LogLevel::kInfo, "agent disconnected", {{"node", gone}});
      on_change_(gone);
    }
    if (!writing) stream.Finish(status);
  }

  template <typename Change>
  void ChangeReport(Node& node, Change change) FF_REQUIRES(mutex_) {
    auto report = node.report == nullptr ? std::make_shared<plan::NodeReport>()
                                         : std::make_shared<plan::NodeReport>(*node.report);
    change(*report);
    node.report = std::move(report);
  }

  std::shared_ptr<AgentStream> StreamOf(const std::string& node) FF_REQUIRES(mutex_) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end() || found->second.stream == nullptr) return nullptr;
    return streams_.at(found->second.stream);
  }

  std::string NodeOf(const AgentStream& stream) {
    const MutexLock lock(&mutex_);
    return stream.node;
  }

  void ForgetOldNodes() FF_REQUIRES(mutex_) {
    const int64_t now_ns = clock_.WallNanos();
    std::erase_if(nodes_, [&](const auto& entry) {
      const plan::NodeReport& report = *entry.second.report;
      return !report.connected && now_ns - report.disconnected_since_ns >= kForgetAfterNs;
    });
  }

  void CountConnected() FF_REQUIRES(mutex_) {
    double connected = 0;
    for (const auto& [name, node] : nodes_)
      connected += node.stream == nullptr ? 0 : 1;
    connected_.Set(connected);
  }

  const Clock& clock_;
  const ChangeHandler on_change_;
  GaugeMetric connected_;
  CounterMetric snapshots_;
  CounterMetric deltas_;
  CounterMetric protocol_errors_;
  const AssignmentPtr nothing_ = std::make_shared<const plan::NodeAssignment>();

  mutable Mutex mutex_;
  std::map<AgentStream*, std::shared_ptr<AgentStream>> streams_
      FF_GUARDED_BY(mutex_);  // until gRPC is done with each
  std::map<std::string, Node> nodes_ FF_GUARDED_BY(mutex_);
  std::map<std::string, ConfigPtr> configs_ FF_GUARDED_BY(mutex_);  // by pool
  std::map<std::string, AssignmentPtr> assignments_
      FF_GUARDED_BY(mutex_);  // by node; none is empty

  int port_ = 0;                          // constant after Listen
  std::unique_ptr<grpc::Server> server_;  // last: its end ends all callbacks
};

ControlServer::ControlServer(const Clock& clock, Metrics& metrics, ChangeHandler on_change)
    : impl_(std::make_unique<Impl>(clock, metrics, std::move(on_change))) {}

ControlServer::~ControlServer() = default;

Status ControlServer::Listen(const std::string& address) {
  return impl_->Listen(address);
}

int ControlServer::port() const {
  return impl_->port();
}

void ControlServer::SetConfig(const std::string& pool, plan::AgentConfig config) {
  impl_->SetConfig(pool, std::move(config));
}

void ControlServer::SetAssignment(const std::string& node, plan::NodeAssignment assignment) {
  impl_->SetAssignment(node, std::move(assignment));
}

std::shared_ptr<const plan::NodeReport> ControlServer::ReportOf(const std::string& node) const {
  return impl_->ReportOf(node);
}

std::vector<std::string> ControlServer::Nodes() const {
  return impl_->Nodes();
}

}  // namespace flamefleet::control
