// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "operator/plan/condition_reasons.h"
#include "operator/plan/names.h"
#include "operator/plan/pool_nodes.h"
#include "operator/plan/status.h"
#include "operator/plan/status_parts.h"

namespace flamefleet::plan {
namespace {

// Ready or not, and whether it takes a person to change that.
struct Judgement {
  Verdict verdict;
  bool stalled = false;
};

Judgement Progressing(std::string_view reason, std::string message) {
  return {{kFalse, reason, std::move(message)}, false};
}
Judgement Stalled(std::string_view reason, std::string message) {
  return {{kFalse, reason, std::move(message)}, true};
}

// The DaemonSet's controller cannot create the pods that are missing; not when it could since,
// since an event outlives its cause.
bool PodsAreRefused(const PoolView& view) {
  if (view.refused_pods == nullptr || view.daemon_set->created >= view.daemon_set->desired)
    return false;
  return std::ranges::none_of(view.agent_pods, [&](const api::AgentPod* pod) {
    return pod->meta.creation_ns >= view.refused_pods->last_ns;
  });
}

std::string WhyPodsAreRefused(const std::string& ns, const std::string& message) {
  if (message.find("violates PodSecurity") == std::string::npos)
    return "the pods of the agents cannot be created: " + message;
  return "namespace " + ns +
         " does not admit the agents, which see all processes of their node: "
         "label it pod-security.kubernetes.io/enforce=privileged: " +
         message;
}

// What is wrong with the DaemonSet as a whole, if anything is.
std::optional<Judgement> JudgeDaemonSet(const std::string& name, const PoolView& view) {
  if (!view.refusal.empty()) {
    return Stalled(condition_reasons::kDaemonSetRefused,
                   "the API server refuses " + name + ": " + view.refusal);
  }
  const api::Workload* daemon_set = view.daemon_set;
  if (daemon_set == nullptr)
    return Progressing(condition_reasons::kNoDaemonSet, name + " does not exist yet");
  if (daemon_set->observed_generation < daemon_set->meta.generation) {
    return Progressing(condition_reasons::kRollingOut,
                       name + " was changed and is not looked at yet by its controller");
  }
  if (daemon_set->desired == 0) {
    return Progressing(condition_reasons::kNoNodes,
                       "no node matches spec.nodeSelector, spec.affinity and spec.tolerations");
  }
  if (PodsAreRefused(view)) {
    return Stalled(condition_reasons::kPodsNotCreated,
                   WhyPodsAreRefused(daemon_set->meta.ns, view.refused_pods->message));
  }
  return std::nullopt;
}

// The first check that fails says why the pool is not ready.
Judgement Judge(const api::AgentPool& pool, const PoolView& view, const NodeTally& nodes) {
  const std::string name = "DaemonSet " + AgentDaemonSetName(pool.meta.name);
  if (auto wrong = JudgeDaemonSet(name, view)) return *std::move(wrong);
  const int64_t desired = view.daemon_set->desired;
  const std::string of = " of " + Count(desired, "agent");
  const std::string sampling = std::to_string(nodes.profiling) + of + " sample";
  const auto because = [&](const api::ProblemNode& problem) {
    return sampling + "; node " + problem.name + ": " + problem.message;
  };
  const bool lacking = nodes.profiling < desired;
  if (lacking && nodes.conflicts > 0) return Stalled(condition_reasons::kConflict, nodes.conflict);
  if (lacking && nodes.stalled) return Stalled(nodes.worst.reason, because(nodes.worst));
  if (view.daemon_set->updated < desired) {
    return Progressing(condition_reasons::kRollingOut,
                       std::to_string(view.daemon_set->updated) + of + " run the newest version");
  }
  if (lacking && !nodes.worst.name.empty())
    return Progressing(nodes.worst.reason, because(nodes.worst));
  if (view.daemon_set->ready < desired || lacking) {
    return Progressing(
        condition_reasons::kAgentsNotReady,
        std::to_string(view.daemon_set->ready) + of + " are ready; look at the pods of " + name);
  }
  return {{kTrue, condition_reasons::kAllNodesProfiling, sampling}};
}

std::vector<api::Condition> Conditions(const api::AgentPool& pool, const PoolView& view,
                                       const NodeTally& nodes, int64_t now_ns) {
  std::vector<api::Condition> conditions;
  const auto add = [&](std::string_view type, Verdict verdict) {
    conditions.push_back(MakeCondition(type, std::move(verdict), pool.meta.generation,
                                       pool.status.conditions, now_ns));
  };
  const Judgement judgement = Judge(pool, view, nodes);
  if (view.refusal.empty()) {
    add("Accepted", {kTrue, condition_reasons::kAccepted, "the spec is in force"});
  } else {
    add("Accepted", judgement.verdict);
  }
  add("Ready", judgement.verdict);
  if (judgement.verdict.status == kFalse) {
    Verdict progress = judgement.verdict;
    progress.status = kTrue;
    add(judgement.stalled ? "Stalled" : "Reconciling", std::move(progress));
  }
  if (view.host_problem) {
    add("Degraded", {kTrue, view.host_problem->reason,
                     "processes of the nodes are not profiled: " + view.host_problem->message});
  } else if (view.selector_unread) {
    add("Degraded", {kTrue, condition_reasons::kNamespacesNotRead,
                     "spec.optIn.namespaceSelector selects nothing: the operator watches some "
                     "namespaces only (--watch-namespace) and may not read labels of any"});
  } else if (!nodes.limited.empty()) {
    add("Degraded", {kTrue, nodes.limited_reason, nodes.limited});
  }
  if (nodes.conflicts > 0) add("Conflict", {kTrue, condition_reasons::kConflict, nodes.conflict});
  return conditions;
}

}  // namespace

NodePods SumUpPods(const std::vector<PodView>& pods, int64_t now_ns) {
  const auto asked = [](const Askers& askers) { return askers.annotations || askers.pool; };
  // No time: whoever adds nodes up knows since when what the agent gives no time for.
  const std::vector<api::FailingPod> before;
  PodTallier tallier(before, /*with_namespace=*/true, /*now_ns=*/0);
  std::vector<PodView> concerned;  // the others' warnings are their targets' business
  for (const PodView& pod : pods) {
    if (pod.plan->annotated || pod.plan->pooled)
      tallier.Add(*pod.pod, JudgePod(pod, asked, now_ns));
    if (pod.plan->pooled || !pod.pod->annotations.empty()) concerned.push_back(pod);
  }
  PodTally tally = tallier.Finish();
  return {tally.counts, tally.unknown, std::move(tally.failing),
          CollectWarnings(concerned, /*with_namespace=*/true)};
}

api::AgentPoolStatus PoolStatus(const api::AgentPool& pool, const PoolView& view,
                                const StatusInput& input) {
  const api::AgentPoolStatus& before = pool.status;
  PodTallier tallier(before.failing_pods, /*with_namespace=*/true, input.now_ns);
  std::vector<api::PodWarning> warnings;
  for (const NodePods* pods : view.pods) {
    tallier.Add(*pods);
    warnings.insert(warnings.end(), pods->warnings.begin(), pods->warnings.end());
  }
  SortWarnings(warnings);
  PodTally pods = tallier.Finish();
  NodeTally nodes = TallyNodes(view, input.now_ns);
  if (!input.settled && (pods.unknown || nodes.unknown)) return before;

  api::AgentPoolStatus status;
  status.observed_generation = pool.meta.generation;
  status.conditions = Conditions(pool, view, nodes, input.now_ns);
  if (view.daemon_set != nullptr) {
    status.nodes = {view.daemon_set->desired, view.daemon_set->ready, nodes.profiling,
                    nodes.degraded};
  }
  status.annotated_pods = pods.counts;
  status.failing_pods = std::move(pods.failing);
  status.warnings = std::move(warnings);
  status.problem_nodes = std::move(nodes.problems);
  return status;
}

}  // namespace flamefleet::plan
