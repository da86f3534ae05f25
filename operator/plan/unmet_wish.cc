// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/unmet_wish.h"

namespace flamefleet::plan {

std::optional<Problem> UnmetWish(const PodPlan& plan) {
  if (plan.vetoed || !plan.collections.empty()) return std::nullopt;
  if (plan.not_enabled) return plan.not_enabled;
  for (const Refusal& refusal : plan.refusals) {
    if (refusal.askers.annotations) return refusal.problem;
  }
  // A key that is misspelt asks for nothing, though its owner thinks it does.
  if (!plan.warnings.empty()) return plan.warnings.front();
  return std::nullopt;
}

}  // namespace flamefleet::plan
