// SPDX-License-Identifier: Apache-2.0
// UnmetWish: why a pod that asks for profiles by its own annotations gets none. ProfilingTargets
// say it in their status; the owner of an annotated pod looks at the pod.
//
// Thread: any; pure.
#pragma once

#include <optional>

#include "operator/plan/pod_health.h"

namespace flamefleet::plan {

// Nothing when some profile is collected, or when nobody but a target asks. NoAgentPool may be true
// for a moment only, while agents are rolled out: how long it has been so is the caller's matter.
std::optional<Problem> UnmetWish(const PodView& view);

}  // namespace flamefleet::plan
