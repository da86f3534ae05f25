// SPDX-License-Identifier: Apache-2.0
#include "operator/control/node_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace flamefleet::control {
namespace {

void Change(std::shared_ptr<const plan::NodeReport>& report,
            const std::function<void(plan::NodeReport&)>& change) {
  auto changed = std::make_shared<plan::NodeReport>(*report);
  change(*changed);
  report = std::move(changed);
}

}  // namespace

bool NodeTable::HasRoom(const std::string& node) const {
  const auto known = nodes_.find(node);
  return known == nodes_.end() || known->second.idle.size() < kMaxIdleStreams;
}

AgentStream* NodeTable::Join(const std::string& node, const std::string& pool,
                             AgentStream* stream) {
  Node& joined = nodes_[node];
  if (joined.speaker.stream == nullptr) {
    ++connected_;
  } else {
    joined.idle.push_back(std::exchange(joined.speaker, {}));
  }
  AgentStream* older = nullptr;
  const auto same = std::ranges::find(joined.idle, pool, &Seat::pool);
  if (same != joined.idle.end()) {
    older = same->stream;
    joined.idle.erase(same);
  }
  joined.idle.push_back({stream, pool});
  Elect(node, joined);
  return older;
}

NodeTable::Left NodeTable::Leave(const std::string& node, AgentStream* stream, int64_t wall_ns) {
  Left left;
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return left;
  Node& of = found->second;
  std::erase_if(of.idle, [stream](const Seat& seat) { return seat.stream == stream; });
  if (of.speaker.stream != stream) return left;
  left.spoke = true;
  of.speaker = {};
  --connected_;
  Change(of.report, [wall_ns](plan::NodeReport& report) {
    report.connected = false;
    report.disconnected_since_ns = wall_ns;
  });
  if (!Elect(node, of)) return left;
  left.next = of.speaker.stream;
  ++connected_;
  return left;
}

bool NodeTable::SetOwner(const std::string& node, const std::string& pool) {
  if (pool.empty()) {
    owners_.erase(node);
  } else {
    owners_[node] = pool;
  }
  const auto known = nodes_.find(node);
  return known != nodes_.end() && Elect(node, known->second);
}

bool NodeTable::Elect(const std::string& name, Node& node) {
  const auto owner = owners_.find(name);
  auto next = owner == owners_.end() ? node.idle.end()
                                     : std::ranges::find(node.idle, owner->second, &Seat::pool);
  if (next == node.idle.end()) {
    if (node.speaker.stream != nullptr || node.idle.empty()) return false;
    next = std::prev(node.idle.end());
  }
  Seat before = std::exchange(node.speaker, *next);
  node.idle.erase(next);
  if (before.stream != nullptr) node.idle.push_back(std::move(before));
  Change(node.report, [&node](plan::NodeReport& report) {
    if (report.pool != node.speaker.pool) report = {};
    report.pool = node.speaker.pool;
    report.connected = true;
    report.disconnected_since_ns = 0;
  });
  return true;
}

bool NodeTable::Speaks(const std::string& node, const AgentStream* stream) const {
  const auto known = nodes_.find(node);
  return known != nodes_.end() && known->second.speaker.stream == stream;
}

std::vector<AgentStream*> NodeTable::StreamsOf(const std::string& node) const {
  std::vector<AgentStream*> streams;
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return streams;
  if (known->second.speaker.stream != nullptr) streams.push_back(known->second.speaker.stream);
  for (const Seat& seat : known->second.idle)
    streams.push_back(seat.stream);
  return streams;
}

std::vector<std::string> NodeTable::Names() const {
  std::vector<std::string> names;
  names.reserve(nodes_.size());
  for (const auto& [name, node] : nodes_)
    names.push_back(name);
  return names;
}

std::shared_ptr<const plan::NodeReport> NodeTable::ReportOf(const std::string& node) const {
  const auto known = nodes_.find(node);
  return known == nodes_.end() ? nullptr : known->second.report;
}

void NodeTable::ChangeReport(const std::string& node,
                             const std::function<void(plan::NodeReport&)>& change) {
  const auto known = nodes_.find(node);
  if (known != nodes_.end()) Change(known->second.report, change);
}

std::set<std::string> NodeTable::BackendsOf(const std::string& node,
                                            const plan::NodeAssignment& assignment,
                                            int64_t now_ns) {
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return {};
  BackendUse& use = known->second.backends;
  use.Refresh(assignment, *known->second.report, now_ns);
  return use.Names();
}

std::vector<std::string> NodeTable::NodesWithFewerBackends(int64_t now_ns) const {
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) {
    if (node.backends.IsDue(now_ns)) names.push_back(name);
  }
  return names;
}

void NodeTable::ForgetOld(int64_t wall_ns) {
  std::erase_if(nodes_, [wall_ns](const auto& entry) {
    const Node& node = entry.second;
    return !node.report->connected && node.idle.empty() &&
           wall_ns - node.report->disconnected_since_ns >= kForgetAfterNs;
  });
}

}  // namespace flamefleet::control
