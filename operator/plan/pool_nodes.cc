// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/pool_nodes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/reasons.h"
#include "operator/plan/condition_reasons.h"
#include "operator/plan/status_parts.h"

namespace flamefleet::plan {
namespace {

// Names in one message.
constexpr size_t kMaxNamesInMessage = 10;

bool IsOneOf(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

// Why the pod of an agent does not run, in plain words.
api::ProblemNode Explain(const api::AgentPod& pod) {
  const auto because = [&](std::string_view reason, std::string_view words) {
    std::string message(words);
    if (!pod.message.empty()) message += ": " + pod.message;
    return api::ProblemNode{pod.node, std::string(reason), Bounded(std::move(message))};
  };
  if (pod.reason == "Unschedulable") {
    return because(condition_reasons::kAgentNotScheduled,
                   "the node has no room for the agent, whose spec.resources.requests must fit");
  }
  if (IsOneOf(pod.reason, {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull",
                           "InvalidImageName", "ImageInspectError", "RegistryUnavailable"})) {
    return because(condition_reasons::kImageNotPulled,
                   "the image of the agent cannot be had, look at spec.image and "
                   "spec.imagePullSecrets");
  }
  if (pod.reason == "CrashLoopBackOff") {
    const bool killed = pod.message.starts_with("OOMKilled");
    return because(condition_reasons::kAgentCrashes,
                   killed ? "the agent needs more memory than spec.resources.limits.memory allows"
                          : "the agent ends again and again, look at its log");
  }
  return because(condition_reasons::kAgentNotStarted,
                 "the agent's container does not start (" + pod.reason + ")");
}

class Tallier {
 public:
  Tallier(const PoolView& view, int64_t now_ns) : view_(view), now_ns_(now_ns) {}

  NodeTally Run() {
    for (const api::AgentPod* pod : view_.agent_pods) {
      if (!pod->reason.empty() && !pod->meta.deleting) pods_[pod->node] = pod;
    }
    std::vector<std::string> conflicts;
    for (const PoolView::Node& node : view_.nodes) {
      if (node.owner.empty()) {
        Add(node);
      } else {
        conflicts.push_back(node.name);
        AddProblem({node.name, std::string(condition_reasons::kConflict),
                    "the node belongs to the older AgentPool " + node.owner},
                   /*stalled=*/true);
      }
    }
    for (const auto& [node, pod] : pods_)
      AddProblem(Explain(*pod), /*stalled=*/true);  // it has no node yet
    tally_.conflicts = static_cast<int64_t>(conflicts.size());
    tally_.conflict = Sentence(conflicts);
    return Finish();
  }

 private:
  void Add(const PoolView::Node& node) {
    const auto pod = pods_.find(node.name);
    if (pod != pods_.end()) {
      AddProblem(Explain(*pod->second), /*stalled=*/true);
      pods_.erase(pod);
      return;
    }
    const NodeReport* report = node.report;
    if (!IsCurrent(report, now_ns_)) {
      tally_.unknown = tally_.unknown || report == nullptr || !report->received;
      if (report != nullptr && report->connected) return;  // it has just come
      AddProblem({node.name, std::string(reasons::kAgentNotConnected),
                  node.agent_ready ? "the agent is ready but not connected to the operator"
                                   : "the agent is not ready and not connected to the operator"},
                 /*stalled=*/false);
      return;
    }
    if (report->sampling) {
      ++tally_.profiling;
      AddHost(node.name, *report);
    }
    for (const NodeProblem& problem : report->problems) {
      if (report->sampling) AddLimit(node.name, problem);
      AddProblem({node.name, problem.reason, Bounded(problem.message)}, !report->sampling);
    }
    if (!report->sampling && report->problems.empty()) {
      AddProblem(
          {node.name, std::string(reasons::kSamplingUnavailable), "the agent does not sample"},
          /*stalled=*/true);
    }
  }

  // Processes of the node belong to no pod that could say it.
  void AddHost(const std::string& node, const NodeReport& report) {
    const auto host = report.collections.find(CollectionId());
    if (host == report.collections.end() || host->second.state != CollectionState::kFailing) return;
    const NodeProblem problem{host->second.reason,
                              "profiles of the node's processes: " + host->second.message};
    AddLimit(node, problem);
    AddProblem({node, problem.reason, Bounded(problem.message)}, /*stalled=*/false);
  }

  void AddLimit(const std::string& node, const NodeProblem& problem) {
    if (limited_.empty()) tally_.limited_reason = problem.reason;
    if (tally_.limited_reason != problem.reason)
      tally_.limited_reason = condition_reasons::kSeveralReasons;
    limited_[problem.message].push_back(node);
  }

  void AddProblem(api::ProblemNode problem, bool stalled) {
    const bool worse = tally_.worst.name.empty() || (stalled && !tally_.stalled) ||
                       (stalled == tally_.stalled && problem.name < tally_.worst.name);
    if (worse) {
      tally_.worst = problem;
      tally_.stalled = stalled;
    }
    degraded_.insert(problem.name);
    tally_.problems.push_back(std::move(problem));
  }

  static std::string Names(const std::vector<std::string>& nodes) {
    std::string text;
    for (size_t i = 0; i < std::min(nodes.size(), kMaxNamesInMessage); ++i)
      text += (i == 0 ? "" : ", ") + nodes[i];
    if (nodes.size() > kMaxNamesInMessage)
      text += " and " + std::to_string(nodes.size() - kMaxNamesInMessage) + " more";
    return text;
  }

  static std::string Sentence(const std::vector<std::string>& conflicts) {
    return Count(static_cast<int64_t>(conflicts.size()), "node") +
           (conflicts.size() == 1 ? " belongs" : " belong") +
           " to an older AgentPool: " + Names(conflicts) +
           "; their agents of this pool stay idle until spec.nodeSelector or spec.affinity "
           "of one pool leaves them out";
  }

  // What is said of the most nodes comes first.
  std::string Limits() const {
    std::vector<std::pair<std::string, std::vector<std::string>>> limits(limited_.begin(),
                                                                         limited_.end());
    std::ranges::stable_sort(limits, std::greater(),
                             [](const auto& limit) { return limit.second.size(); });
    std::string text;
    for (const auto& [message, nodes] : limits)
      text += (text.empty() ? "" : "; ") + ("on " + Names(nodes)) + ": " + message;
    return Bounded(std::move(text));
  }

  NodeTally Finish() {
    tally_.degraded = static_cast<int64_t>(degraded_.size());
    tally_.limited = Limits();
    std::ranges::stable_sort(tally_.problems, {}, &api::ProblemNode::name);
    if (tally_.problems.size() > kMaxProblemNodes) tally_.problems.resize(kMaxProblemNodes);
    return std::move(tally_);
  }

  const PoolView& view_;
  const int64_t now_ns_;
  std::map<std::string, const api::AgentPod*> pods_;  // with a reason, by node
  std::set<std::string> degraded_;
  std::map<std::string, std::vector<std::string>> limited_;  // nodes by what is said of them
  NodeTally tally_;
};

}  // namespace

NodeTally TallyNodes(const PoolView& view, int64_t now_ns) {
  return Tallier(view, now_ns).Run();
}

}  // namespace flamefleet::plan
