// SPDX-License-Identifier: Apache-2.0
#include "operator/control/agent_hub.h"

#include <algorithm>
#include <iterator>
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
                                "Newer tokens of agents that kept their stream.")) {
  for (const std::string_view reason : refusal::kAll) {
    refused_.emplace(reason, metrics.Counter("flamefleet_operator_agents_refused_total",
                                             "Control streams that were refused or ended because "
                                             "the agent may not be served.",
                                             {{"reason", std::string(reason)}}));
  }
}

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
    ForgetOldNodes();
    const int64_t now_ns = clock_.MonotonicNanos();
    for (const auto& [name, node] : nodes_) {
      if (node.backends.IsDue(now_ns)) std::ranges::copy(StreamsOf(name), std::back_inserter(due));
    }
    const int64_t wall_ns = clock_.WallNanos();
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
    if (pool.empty()) {
      owners_.erase(node);
    } else {
      owners_[node] = pool;
    }
    changed = Elect(node);
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
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? nullptr : found->second.report;
}

std::vector<std::string> AgentHub::Nodes() const {
  const MutexLock lock(&mutex_);
  std::vector<std::string> names;
  names.reserve(nodes_.size());
  for (const auto& [name, node] : nodes_)
    names.push_back(name);
  return names;
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
      const auto known = nodes_.find(hello.node());
      if (known != nodes_.end() && known->second.idle.size() >= kMaxIdleStreams)
        return Broken("Hello: agents of too many pools on one node");
      stream.node = hello.node();
      stream.pool = hello.pool();
      older = Admit(stream);
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
    const auto node = nodes_.find(stream.node);
    if (node == nodes_.end() || node->second.stream != &stream)
      return grpc::Status::OK;  // another one speaks for it
    name = stream.node;
    ChangeReport(node->second, [&](plan::NodeReport& to) { FromProto(report, to); });
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
    const auto node = nodes_.find(stream.node);
    const bool speaks = node != nodes_.end() && node->second.stream == &stream;
    const auto assignment = speaks ? assignments_.find(stream.node) : assignments_.end();
    if (!stream.outbox.Next(ConfigOf(stream.node, config->second),
                            assignment == assignments_.end() ? nothing_ : assignment->second,
                            stream.out)) {
      return;
    }
    stream.writing = true;
  }
  (stream.out.has_snapshot() ? snapshots_ : deltas_).Increment();
  stream.StartWrite(&stream.out);
}

ConfigPtr AgentHub::ConfigOf(const std::string& name, const ConfigPtr& all) {
  const auto node = nodes_.find(name);
  if (node == nodes_.end()) return node_configs_.For(all, {});
  const auto assignment = assignments_.find(name);
  BackendUse& use = node->second.backends;
  use.Refresh(assignment == assignments_.end() ? *nothing_ : *assignment->second,
              *node->second.report, clock_.MonotonicNanos());
  return node_configs_.For(all, use.Names());
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
    const auto node = nodes_.find(stream.node);
    if (node != nodes_.end()) std::erase(node->second.idle, &stream);
    if (node != nodes_.end() && node->second.stream == &stream) {
      gone = stream.node;
      node->second.stream = nullptr;
      connected_.Set(static_cast<double>(--connected_nodes_));
      ChangeReport(node->second, [&](plan::NodeReport& report) {
        report.connected = false;
        report.disconnected_since_ns = clock_.WallNanos();
      });
      if (Elect(gone)) {
        next = streams_.at(node->second.stream);
        connected_.Set(static_cast<double>(++connected_nodes_));
      }
    }
  }
  if (!gone.empty()) {
    Log(LogLevel::kInfo, "agent disconnected", {{"node", gone}});
    on_change_(gone);
  }
  if (next != nullptr) Pump(*next);
  if (finish) stream.Finish(status);
}

void AgentHub::Refuse(AgentStream& stream, std::string_view refusal, const grpc::Status& status) {
  refused_.at(refusal).Increment();
  bool log = false;
  std::string node;
  {
    const MutexLock lock(&mutex_);
    node = stream.identity.node;
    const int64_t now_ns = clock_.MonotonicNanos();
    const auto [logged, first] = refusal_logged_ns_.try_emplace(refusal, now_ns);
    log = first || now_ns - logged->second >= kRefusalLogIntervalNs;
    if (log) logged->second = now_ns;
  }
  if (log) {
    Log(LogLevel::kWarn, "agent refused",
        {{"reason", refusal},
         {"peer", stream.peer},
         {"node", node},
         {"error", status.error_message()}});
  }
  End(stream, status);
}

template <typename Change>
void AgentHub::ChangeReport(Node& node, Change change) {
  auto report = node.report == nullptr ? std::make_shared<plan::NodeReport>()
                                       : std::make_shared<plan::NodeReport>(*node.report);
  change(*report);
  node.report = std::move(report);
}

AgentHub::StreamPtr AgentHub::Admit(AgentStream& stream) {
  Node& node = nodes_[stream.node];
  AgentStream* older = nullptr;
  if (node.stream == nullptr) {
    connected_.Set(static_cast<double>(++connected_nodes_));
  } else {
    node.idle.push_back(std::exchange(node.stream, nullptr));
  }
  const auto same = std::ranges::find(node.idle, stream.pool, &AgentStream::pool);
  if (same != node.idle.end()) {
    older = *same;
    node.idle.erase(same);
  }
  node.idle.push_back(&stream);
  Elect(stream.node);
  return older == nullptr ? nullptr : streams_.at(older);
}

bool AgentHub::Elect(const std::string& name) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return false;
  Node& node = found->second;
  const auto owner = owners_.find(name);
  auto next = owner == owners_.end()
                  ? node.idle.end()
                  : std::ranges::find(node.idle, owner->second, &AgentStream::pool);
  if (next == node.idle.end()) {
    if (node.stream != nullptr || node.idle.empty()) return false;
    next = std::prev(node.idle.end());
  }
  AgentStream* const before = node.stream;
  node.stream = *next;
  node.idle.erase(next);
  if (before != nullptr) node.idle.push_back(before);
  ChangeReport(node, [&](plan::NodeReport& report) {
    if (report.pool != node.stream->pool) report = {};
    report.pool = node.stream->pool;
    report.connected = true;
    report.disconnected_since_ns = 0;
  });
  return true;
}

std::vector<AgentHub::StreamPtr> AgentHub::StreamsOf(const std::string& name) {
  std::vector<StreamPtr> streams;
  const auto node = nodes_.find(name);
  if (node == nodes_.end()) return streams;
  if (node->second.stream != nullptr) streams.push_back(streams_.at(node->second.stream));
  for (AgentStream* stream : node->second.idle)
    streams.push_back(streams_.at(stream));
  return streams;
}

void AgentHub::ForgetOldNodes() {
  const int64_t now_ns = clock_.WallNanos();
  std::erase_if(nodes_, [&](const auto& entry) {
    const plan::NodeReport& report = *entry.second.report;
    return !report.connected && entry.second.idle.empty() &&
           now_ns - report.disconnected_since_ns >= kForgetAfterNs;
  });
}

}  // namespace flamefleet::control
