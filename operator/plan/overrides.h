// SPDX-License-Identifier: Apache-2.0
// What somebody says about a profile type and somebody stronger says otherwise: nothing is lost in
// silence. ProfilingTargets win over annotations, pyroscope.io/* over profiles.grafana.com/*.
//
// Thread: any; pure.
#pragma once

#include <vector>

#include "operator/plan/annotations.h"
#include "operator/plan/pod_plan.h"

namespace flamefleet::plan {

struct OverrideInput {
  ProfileType type = ProfileType::kCpu;
  const api::Pod& pod;
  const AnnotatedProfile& pyroscope;
  const AnnotatedProfile& grafana;
};

// Annotations that the target's profile overrides.
std::vector<Problem> OverriddenByTarget(const OverrideInput& input,
                                        const api::ProfilingTarget& target,
                                        const api::ProfileSpec& profile);

// What the target says and this pod has no use for, though it is collected.
std::vector<Problem> WithoutEffect(const api::Pod& pod, const api::ProfilingTarget& target,
                                   const api::ProfileSpec& profile,
                                   const std::vector<Collection>& collections);

// Of two families that both ask, what the weaker one says in vain.
std::vector<Problem> OverriddenByPyroscope(const OverrideInput& input);

}  // namespace flamefleet::plan
