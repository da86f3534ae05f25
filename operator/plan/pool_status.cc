// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/reasons.h"
#include "operator/plan/condition_reasons.h"
#include "operator/plan/names.h"
#include "operator/plan/status.h"
#include "operator/plan/status_parts.h"

namespace flamefleet::plan {
namespace {

struct NodeTally {
  int64_t profiling = 0;
  bool unknown = false;
  std::vector<api::ProblemNode> problems;  // by name, at most kMaxProblemNodes
};

NodeTally TallyNodes(const std::vector<PoolView::Node>& nodes, int64_t now_ns) {
  NodeTally tally;
  for (const PoolView::Node& node : nodes) {
    if (!IsCurrent(node.report, now_ns)) {
      tally.unknown = tally.unknown || node.report == nullptr || !node.report->received;
      if (node.report != nullptr && node.report->connected) continue;  // it has just come
      tally.problems.push_back({node.name, std::string(reasons::kAgentNotConnected),
                                node.agent_ready
                                    ? "the agent is ready but not connected to the operator"
                                    : "the agent is not ready and not connected to the operator"});
      continue;
    }
    if (node.report->sampling) ++tally.profiling;
    for (const NodeProblem& problem : node.report->problems) {
      tally.problems.push_back({node.name, problem.reason, Bounded(problem.message)});
    }
    if (!node.report->sampling && node.report->problems.empty()) {
      tally.problems.push_back(
          {node.name, std::string(reasons::kSamplingUnavailable), "the agent does not sample"});
    }
  }
  std::ranges::stable_sort(tally.problems, {}, &api::ProblemNode::name);
  if (tally.problems.size() > kMaxProblemNodes) tally.problems.resize(kMaxProblemNodes);
  return tally;
}

// The first check that fails says why the pool is not ready.
Verdict Ready(const api::AgentPool& pool, const api::Workload* daemon_set, const NodeTally& nodes) {
  const std::string name = "DaemonSet " + AgentDaemonSetName(pool.meta.name);
  if (daemon_set == nullptr)
    return {kFalse, condition_reasons::kNoDaemonSet, name + " does not exist yet"};
  if (daemon_set->observed_generation < daemon_set->meta.generation) {
    return {kFalse, condition_reasons::kRollingOut,
            name + " was changed and is not looked at yet by its controller"};
  }
  const int64_t desired = daemon_set->desired;
  if (desired == 0)
    return {kFalse, condition_reasons::kNoNodes,
            "no node matches spec.nodeSelector and spec.tolerations"};
  const std::string of = " of " + Count(desired, "agent");
  if (daemon_set->updated < desired) {
    return {kFalse, condition_reasons::kRollingOut,
            std::to_string(daemon_set->updated) + of + " run the newest version"};
  }
  if (nodes.profiling < desired && !nodes.problems.empty()) {
    const api::ProblemNode& first = nodes.problems.front();
    return {kFalse, first.reason,
            std::to_string(nodes.profiling) + of + " sample; node " + first.name + ": " +
                first.message};
  }
  if (daemon_set->ready < desired || nodes.profiling < desired) {
    return {kFalse, condition_reasons::kAgentsNotReady,
            std::to_string(daemon_set->ready) + of + " are ready; look at the pods of " + name};
  }
  return {kTrue, condition_reasons::kAllNodesProfiling,
          std::to_string(nodes.profiling) + of + " sample"};
}

}  // namespace

api::AgentPoolStatus PoolStatus(const api::AgentPool& pool, const PoolView& view,
                                const StatusInput& input) {
  const api::AgentPoolStatus& before = pool.status;
  const auto asked = [](const Askers& askers) { return askers.annotations; };
  PodTallier tallier(before.failing_pods, /*with_namespace=*/true, input.now_ns);
  for (const PodView& pod : view.pods) {
    if (pod.plan->annotated) tallier.Add(*pod.pod, JudgePod(pod, asked, input.now_ns));
  }
  PodTally pods = tallier.Finish();
  NodeTally nodes = TallyNodes(view.nodes, input.now_ns);
  if (!input.settled && (pods.unknown || nodes.unknown)) return before;

  const int64_t generation = pool.meta.generation;
  api::AgentPoolStatus status;
  status.observed_generation = generation;
  status.conditions = {MakeCondition("Ready", Ready(pool, view.daemon_set, nodes), generation,
                                     before.conditions, input.now_ns)};
  if (view.daemon_set != nullptr) {
    status.nodes = {view.daemon_set->desired, view.daemon_set->ready, nodes.profiling};
  }
  status.annotated_pods = pods.counts;
  status.failing_pods = std::move(pods.failing);
  status.warnings = CollectWarnings(view.pods, /*with_namespace=*/true);
  status.problem_nodes = std::move(nodes.problems);
  return status;
}

}  // namespace flamefleet::plan
