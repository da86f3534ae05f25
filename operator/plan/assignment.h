// SPDX-License-Identifier: Apache-2.0
// The work of one node's agent, from the plans of its pods.
//
// Thread: any; pure.
#pragma once

#include <optional>

#include "operator/api/agent_pool.h"
#include "operator/api/pod.h"
#include "operator/plan/backend_table.h"
#include "operator/plan/fleet.h"
#include "operator/plan/pod_plan.h"

namespace flamefleet::plan {

// What the agent does for `pod`; nothing when nothing is collected of it, or when it has ended. Of
// a pod that does not run yet the agent is told the containers, so that it knows whose they may be
// when they start: their ids come here a second later.
std::optional<PodAssignment> AssignPod(const api::Pod& pod, const PodPlan& plan);

// The node's processes that are in no container, into the default backend: what scope Node adds.
// Nothing when that cannot be used (BackendTable::WhyUnusable).
std::optional<PodAssignment> AssignHost(const std::string& node, const BackendTable& backends);

// Of two pools whose agents run on one node the older one keeps it.
bool IsOlder(const api::AgentPool& pool, const api::AgentPool& than);

AgentConfig ConfigOf(const api::AgentPool& pool, const BackendTable& backends);

}  // namespace flamefleet::plan
