// SPDX-License-Identifier: Apache-2.0
#include "operator/control/agent_hub.h"

#include <set>
#include <utility>

#include "base/log.h"
#include "operator/control/convert.h"

namespace flamefleet::control {
namespace {

namespace refusal = security::refusal;

constexpr size_t kMaxNameBytes = 253;  // of nodes and pools, as Kubernetes has it

grpc::Status Broken(const std::string& message) {
  return {grpc::StatusCode::INVALID_ARGUMENT, message};
}

bool IsName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes;
}

constexpr const char* kSentHelp =
    "Assignments sent to agents, whole (snapshot) or changes (delta).";

}  // namespace

AgentHub::AgentHub(const Clock& clock, Metrics& metrics, ChangeHandler on_change,
                   RenewalHandler on_renewal)
    : clock_(clock),
      on_change_(std::move(on_change)),
      on_renewal_(std::move(on_renewal)),
      connected_(metrics.Gauge("flamefleet_operator_agents_connected",
                               "Agents with an open control stream.")),
      snapshots_(metrics.Counter("flamefleet_operator_assignments_sent_total", kSentHelp,
                                 {{"kind", "snapshot"}})),
      deltas_(metrics.Counter("flamefleet_operator_assignments_sent_total", kSentHelp,
                              {{"kind", "delta"}})),
      protocol_errors_(
          metrics.Counter("flamefleet_operator_control_protocol_errors_total",
                          "Control streams ended because the agent broke the protocol.")),
      renewals_(metrics.Counter("flamefleet_operator_token_renewals_total",
                                "Newer tokens of agents that kept their stream.")),
      refusals_(clock, metrics) {}

AgentHub::StreamPtr AgentHub::Open(const std::string& peer) {
  auto stream = std::make_shared<AgentStream>(*this, peer, clock_.MonotonicNanos());
  const MutexLock lock(&mutex_);
  streams_.emplace(stream.get(), stream);
  return stream;
}

void AgentHub::Settle(AgentStream& stream, const security::Admission& admission) {
  const security::AgentIdentity& identity = admission.identity;
  bool mismatch = false;
  bool begin = false;
  {
    const MutexLock lock(&mutex_);
    stream.checking = false;
    if (stream.ended) return;
    // Who was admitted stays until the token of then ends, when nobody can say more now.
    const bool unknown = admission.refusal == refusal::kReviewFailed;
    if (unknown && !stream.identity.node.empty()) return;
    if (admission.status.ok()) {
      begin = stream.identity.node.empty();
      mismatch = !begin && stream.identity.node != identity.node;
      if (!mismatch) stream.identity = identity;
      stream.beginning = begin;
    }
  }
  if (!admission.status.ok()) {
    Refuse(
        stream, admission.refusal,
        {static_cast<grpc::StatusCode>(admission.status.code()), ErrorMessage(admission.status)});
    return;
  }
  if (mismatch) {
    Refuse(stream, refusal::kNodeMismatch,
           {grpc::StatusCode::PERMISSION_DENIED, "the newer token is that of another node"});
    return;
  }
  if (!begin) {
    renewals_.Increment();
    return;
  }
  stream.Begin();
  bool finish = false;
  {
    const MutexLock lock(&mutex_);
    stream.beginning = false;
    finish = stream.ended && !stream.writing;
  }
  if (finish) stream.Finish(stream.end_status);
}

void AgentHub::Sweep() {
  struct Late {
    StreamPtr stream;
    std::string_view refusal;
    grpc::Status status;
  };
  std::vector<Late> late;
  std::vector<StreamPtr> due;  // whose node may use less now
  {
    const MutexLock lock(&mutex_);
    const int64_t now_ns = clock_.MonotonicNanos();
    const int64_t wall_ns = clock_.WallNanos();
    nodes_.ForgetOld(wall_ns);
    for (const std::string& node : nodes_.NodesWithFewerBackends(now_ns)) {
      for (StreamPtr& stream : StreamsOf(node))
        due.push_back(std::move(stream));
    }
    for (const auto& [raw, stream] : streams_) {
      if (raw->ended) continue;
      if (raw->node.empty() && now_ns - raw->opened_ns >= kHelloDeadlineNs) {
        late.push_back(
            {stream, refusal::kNoHello, {grpc::StatusCode::DEADLINE_EXCEEDED, "no Hello in time"}});
      } else if (!raw->identity.node.empty() && raw->identity.expires_at_ns <= wall_ns) {
        late.push_back({stream,
                        refusal::kTokenExpired,
                        {grpc::StatusCode::UNAUTHENTICATED, "the token of the stream expired"}});
      }
    }
  }
  for (const StreamPtr& stream : due)
    Pump(*stream);
  for (const Late& entry : late)
    Refuse(*entry.stream, entry.refusal, entry.status);
}

size_t AgentHub::streams() const {
  const MutexLock lock(&mutex_);
  return streams_.size();
}

void AgentHub::SetConfig(const std::string& pool, plan::AgentConfig config) {
  std::vector<StreamPtr> streams;
  {
    const MutexLock lock(&mutex_);
    ConfigPtr& current = configs_[pool];
    if (current != nullptr && *current == config) return;
    current = std::make_shared<const plan::AgentConfig>(std::move(config));
    node_configs_ = {};  // former secrets are nobody's business
    for (const auto& [raw, stream] : streams_) {
      if (raw->pool == pool) streams.push_back(stream);
    }
  }
  for (const StreamPtr& stream : streams)
    Pump(*stream);
}

AssignmentPtr AgentHub::SetAssignment(const std::string& node, plan::NodeAssignment assignment,
                                      const std::string& pool) {
  AssignmentPtr kept;
  if (!assignment.empty())
    kept = std::make_shared<const plan::NodeAssignment>(std::move(assignment));
  std::vector<StreamPtr> streams;
  bool changed = false;  // who speaks for the node
  {
    const MutexLock lock(&mutex_);
    changed = nodes_.SetOwner(node, pool);
    if (kept == nullptr) {
      assignments_.erase(node);
    } else {
      assignments_[node] = kept;
    }
    streams = StreamsOf(node);
  }
  for (const StreamPtr& stream : streams)
    Pump(*stream);
  if (changed) on_change_(node);
  return kept;
}

std::shared_ptr<const plan::NodeReport> AgentHub::ReportOf(const std::string& node) const {
  const MutexLock lock(&mutex_);
  return nodes_.ReportOf(node);
}

std::vector<std::string> AgentHub::Nodes() const {
  const MutexLock lock(&mutex_);
  return nodes_.Names();
}

void AgentHub::OnMessage(AgentStream& stream, const pb::AgentMessage& message) {
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
    case pb::AgentMessage::kRenewal:
      status = OnRenewal(stream, message.renewal());
      break;
    case pb::AgentMessage::MESSAGE_NOT_SET:
      break;  // of a newer agent: not for us
  }
  if (status.ok()) return;
  protocol_errors_.Increment();
  Log(LogLevel::kWarn, "control stream broken",
      {{"peer", stream.peer}, {"error", status.error_message()}});
  End(stream, status);
}

grpc::Status AgentHub::OnHello(AgentStream& stream, const pb::Hello& hello) {
  if (!IsName(hello.node()) || !IsName(hello.pool()))
    return Broken("Hello: node and pool must be names");
  StreamPtr older;
  std::vector<StreamPtr> streams;
  bool mismatch = false;
  {
    const MutexLock lock(&mutex_);
    if (stream.ended) return grpc::Status::OK;
    if (!stream.node.empty()) return Broken("Hello: only the first message may be one");
    mismatch = hello.node() != stream.identity.node;
    if (!mismatch) {
      if (!nodes_.HasRoom(hello.node()))
        return Broken("Hello: agents of too many pools on one node");
      stream.node = hello.node();
      stream.pool = hello.pool();
      AgentStream* const same = nodes_.Join(stream.node, stream.pool, &stream);
      if (same != nullptr) older = streams_.at(same);
      ShowConnected();
      streams = StreamsOf(stream.node);
    }
  }
  if (mismatch) {
    Refuse(stream, refusal::kNodeMismatch,
           {grpc::StatusCode::PERMISSION_DENIED,
            "the agent calls itself node " + hello.node() + ", its token is that of another one"});
    return grpc::Status::OK;
  }
  Log(LogLevel::kInfo, "agent connected",
      {{"node", hello.node()},
       {"pool", hello.pool()},
       {"pod", hello.pod_name()},
       {"version", hello.agent_version()}});
  if (older != nullptr)
    End(*older, {grpc::StatusCode::ABORTED, "a newer stream of this agent took over"});
  on_change_(hello.node());
  for (const StreamPtr& any : streams)
    Pump(*any);
  return grpc::Status::OK;
}

grpc::Status AgentHub::OnAck(AgentStream& stream, const pb::Ack& ack) {
  const MutexLock lock(&mutex_);
  const Status status = stream.outbox.Acknowledge(ack.version());
  return status.ok() ? grpc::Status::OK : Broken(ErrorMessage(status));
}

grpc::Status AgentHub::OnReport(AgentStream& stream, const pb::Report& report) {
  std::string name;
  std::vector<StreamPtr> streams;
  {
    const MutexLock lock(&mutex_);
    if (stream.node.empty()) return Broken("the first message must be Hello");
    if (!nodes_.Speaks(stream.node, &stream)) return grpc::Status::OK;
    name = stream.node;
    nodes_.ChangeReport(name, [&](plan::NodeReport& to) { FromProto(report, to); });
    streams = StreamsOf(name);
  }
  for (const StreamPtr& any : streams)
    Pump(*any);  // it may say that profiles wait for a backend
  on_change_(name);
  return grpc::Status::OK;
}

grpc::Status AgentHub::OnRenewal(AgentStream& stream, const pb::Renewal& renewal) {
  StreamPtr shared;
  {
    const MutexLock lock(&mutex_);
    if (stream.checking) return Broken("Renewal: the one before it is not answered yet");
    stream.checking = true;
    shared = streams_.at(&stream);
  }
  on_renewal_(shared, renewal.token());
  return grpc::Status::OK;
}

void AgentHub::OnWritten(AgentStream& stream, bool ok) {
  bool ended = false;
  bool finish = false;
  {
    const MutexLock lock(&mutex_);
    stream.writing = false;
    ended = stream.ended;
    finish = ended && !stream.beginning;
  }
  if (finish) {
    stream.Finish(stream.end_status);
  } else if (ended) {
    return;  // Settle does it
  } else if (ok) {
    Pump(stream);  // what came meanwhile
  } else {
    End(stream, {grpc::StatusCode::UNAVAILABLE, "the stream broke"});
  }
}

void AgentHub::OnGone(AgentStream& stream) {
  StreamPtr last;  // destroyed after the lock is released
  const MutexLock lock(&mutex_);
  const auto found = streams_.find(&stream);
  last = std::move(found->second);
  streams_.erase(found);
}

// Sends the next message, unless one is on its way. gRPC may call back from within StartWrite and
// Finish, so neither is called with the lock held; `writing` and `ended` keep them apart.
void AgentHub::Pump(AgentStream& stream) {
  {
    const MutexLock lock(&mutex_);
    if (stream.node.empty() || stream.writing || stream.ended) return;
    const auto config = configs_.find(stream.pool);
    if (config == configs_.end()) return;
    const AssignmentPtr& work = AssignmentOf(stream.node);
    const std::set<std::string> backends =
        nodes_.BackendsOf(stream.node, *work, clock_.MonotonicNanos());
    if (!stream.outbox.Next(node_configs_.For(config->second, backends),
                            nodes_.Speaks(stream.node, &stream) ? work : nothing_, stream.out)) {
      return;
    }
    stream.writing = true;
  }
  (stream.out.has_snapshot() ? snapshots_ : deltas_).Increment();
  stream.StartWrite(&stream.out);
}

const AssignmentPtr& AgentHub::AssignmentOf(const std::string& node) const {
  const auto found = assignments_.find(node);
  return found == assignments_.end() ? nothing_ : found->second;
}

void AgentHub::End(AgentStream& stream, const grpc::Status& status) {
  std::string gone;  // the node that lost its agent
  StreamPtr next;    // that does its work now
  bool finish = false;
  {
    const MutexLock lock(&mutex_);
    if (stream.ended) return;
    stream.ended = true;
    stream.end_status = status;
    finish = !stream.writing && !stream.beginning;
    const NodeTable::Left left = nodes_.Leave(stream.node, &stream, clock_.WallNanos());
    if (left.spoke) gone = stream.node;
    if (left.next != nullptr) next = streams_.at(left.next);
    ShowConnected();
  }
  if (!gone.empty()) {
    Log(LogLevel::kInfo, "agent disconnected", {{"node", gone}});
    on_change_(gone);
  }
  if (next != nullptr) Pump(*next);
  if (finish) stream.Finish(status);
}

void AgentHub::Refuse(AgentStream& stream, std::string_view refusal, const grpc::Status& status) {
  std::string node;
  {
    const MutexLock lock(&mutex_);
    node = stream.identity.node;
  }
  refusals_.Note(refusal, stream.peer, node, status.error_message());
  End(stream, status);
}

std::vector<AgentHub::StreamPtr> AgentHub::StreamsOf(const std::string& node) const {
  std::vector<StreamPtr> streams;
  for (AgentStream* const stream : nodes_.StreamsOf(node))
    streams.push_back(streams_.at(stream));
  return streams;
}

void AgentHub::ShowConnected() {
  connected_.Set(static_cast<double>(nodes_.connected()));
}

}  // namespace flamefleet::control
