// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/reasons.h"
#include "operator/plan/condition_reasons.h"
#include "operator/plan/names.h"
#include "operator/plan/status.h"
#include "operator/plan/status_parts.h"

namespace flamefleet::plan {
namespace {

bool BlamesBackend(const CollectionHealth& health) {
  return health.state == CollectionState::kFailing &&
         (health.reason == reasons::kBackendUnreachable ||
          health.reason == reasons::kBackendUnauthorized ||
          health.reason == reasons::kBackendRefused);
}

struct AgentTally {
  api::ProfilingBackendStatus::Agents counts;
  std::string failing_node;  // the first by name, and what it says
  std::string reason;
  std::string message;
};

AgentTally TallyAgents(const std::vector<BackendView::Agent>& agents) {
  AgentTally tally;
  for (const BackendView::Agent& agent : agents) {
    const auto failing = std::ranges::find_if(
        agent.collections, [](const CollectionHealth* health) { return BlamesBackend(*health); });
    if (failing == agent.collections.end()) {
      const bool delivering =
          std::ranges::any_of(agent.collections, [](const CollectionHealth* health) {
            return health->state == CollectionState::kDelivering;
          });
      if (delivering) ++tally.counts.delivering;
      continue;
    }
    ++tally.counts.failing;
    if (tally.failing_node.empty() || agent.node < tally.failing_node) {
      tally.failing_node = agent.node;
      tally.reason = (*failing)->reason;
      tally.message = (*failing)->message;
    }
  }
  return tally;
}

Verdict Accepted(const api::ProfilingBackend& backend, const std::string& default_name) {
  if (backend.spec.is_default && backend.meta.name != default_name) {
    return {kFalse, condition_reasons::kAnotherDefault,
            "spec.default: the older ProfilingBackend \"" + default_name +
                "\" is the default; this one only takes the profiles that name it"};
  }
  return {kTrue, condition_reasons::kAccepted, "the spec can be served"};
}

// The first check that fails says why the backend is not ready.
Verdict Ready(const api::ProfilingBackend& backend, const BackendView& view,
              const AgentTally& agents) {
  if (backend.spec.managed_store) {
    const std::string name = "Deployment " + StoreName(backend.meta.name);
    if (view.deployment == nullptr)
      return {kFalse, condition_reasons::kStoreNotAvailable, name + " does not exist yet"};
    if (view.deployment->ready == 0) {
      return {kFalse, condition_reasons::kStoreNotAvailable,
              name + " has no available pod; look at its events"};
    }
  }
  const api::ProfilingBackendStatus::Agents& counts = agents.counts;
  if (counts.failing > 0) {
    return {kFalse, agents.reason,
            std::to_string(counts.failing) + " of " +
                Count(counts.failing + counts.delivering, "agent") + " cannot deliver; node " +
                agents.failing_node + ": " + agents.message};
  }
  if (counts.delivering > 0)
    return {kTrue, condition_reasons::kDelivering,
            "profiles of " + Count(counts.delivering, "agent") + " are accepted"};
  if (backend.spec.managed_store)
    return {kTrue, condition_reasons::kStoreAvailable,
            "the store runs; no agent delivers profiles to it yet"};
  return {kUnknown, condition_reasons::kNotUsed, "no agent has delivered a profile to it yet"};
}

}  // namespace

api::ProfilingBackendStatus BackendStatus(const api::ProfilingBackend& backend,
                                          const BackendView& view, const StatusInput& input) {
  const api::ProfilingBackendStatus& before = backend.status;
  if (!input.settled) return before;
  const AgentTally agents = TallyAgents(view.agents);
  const int64_t generation = backend.meta.generation;
  api::ProfilingBackendStatus status;
  status.observed_generation = generation;
  status.conditions = {MakeCondition("Accepted", Accepted(backend, view.default_name), generation,
                                     before.conditions, input.now_ns),
                       MakeCondition("Ready", Ready(backend, view, agents), generation,
                                     before.conditions, input.now_ns)};
  status.endpoint = view.endpoint;
  status.agents = agents.counts;
  return status;
}

std::vector<const CollectionHealth*> HealthOf(const std::string& backend,
                                              const NodeAssignment& assignment,
                                              const NodeReport& report) {
  std::vector<const CollectionHealth*> health;
  const auto add = [&](const std::string& uid, const std::string& container, ProfileType type) {
    const auto found = report.collections.find({uid, container, type});
    if (found != report.collections.end()) health.push_back(&found->second);
  };
  for (const auto& [uid, pod] : assignment) {
    for (const ContainerAssignment& container : pod.containers) {
      if (container.backend == backend) add(uid, container.name, ProfileType::kCpu);
    }
    for (const PullJob& pull : pod.pulls) {
      if (pull.backend == backend) add(uid, pull.container, pull.type);
    }
  }
  return health;
}

}  // namespace flamefleet::plan
