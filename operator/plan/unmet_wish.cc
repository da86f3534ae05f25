// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/unmet_wish.h"

#include "base/reasons.h"

namespace flamefleet::plan {

std::optional<Problem> UnmetWish(const PodView& view) {
  const PodPlan& plan = *view.plan;
  if (plan.vetoed) return std::nullopt;
  if (plan.annotated && !plan.paused_by.empty()) {
    return Problem{reasons::kPaused,
                   "ProfilingTarget \"" + plan.paused_by + "\", which selects the pod, is paused"};
  }
  if (!plan.collections.empty()) {
    if (!plan.annotated || view.node.has_agent_pod) return std::nullopt;
    return Problem{reasons::kNoAgentPool, "node " + view.pod->node +
                                              " runs no agent: look at nodeSelector, affinity and "
                                              "tolerations of the AgentPools"};
  }
  if (plan.not_enabled) return plan.not_enabled;
  for (const Refusal& refusal : plan.refusals) {
    if (refusal.askers.annotations) return refusal.problem;
  }
  // A key that is misspelt asks for nothing, though its owner thinks it does.
  if (!plan.warnings.empty()) return plan.warnings.front();
  return std::nullopt;
}

}  // namespace flamefleet::plan
