// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/reasons.h"
#include "operator/plan/condition_reasons.h"
#include "operator/plan/names.h"
#include "operator/plan/status.h"
#include "operator/plan/status_parts.h"

namespace flamefleet::plan {
namespace {

// What a failing collection says of its backend; empty: it blames something else.
std::string_view Blame(const CollectionHealth& health) {
  if (health.state != CollectionState::kFailing) return {};
  for (const std::string_view reason :
       {reasons::kBackendUnreachable, reasons::kBackendUnauthorized, reasons::kBackendRefused}) {
    if (health.reason == reason) return reason;
  }
  return {};
}

struct AgentTally {
  api::ProfilingBackendStatus::Agents counts;
  std::map<std::string_view, int64_t> by_reason;  // agents that fail for it
  std::string failing_node;                       // the first by name, and what it says
  std::string_view reason;
  std::string message;
};

AgentTally TallyAgents(const std::vector<BackendView::Agent>& agents) {
  AgentTally tally;
  for (const BackendView::Agent& agent : agents) {
    const auto failing = std::ranges::find_if(
        agent.collections, [](const CollectionHealth* health) { return !Blame(*health).empty(); });
    if (failing == agent.collections.end()) {
      const bool delivering =
          std::ranges::any_of(agent.collections, [](const CollectionHealth* health) {
            return health->state == CollectionState::kDelivering;
          });
      if (delivering) ++tally.counts.delivering;
      continue;
    }
    ++tally.counts.failing;
    ++tally.by_reason[Blame(**failing)];
    if (tally.failing_node.empty() || agent.node < tally.failing_node) {
      tally.failing_node = agent.node;
      tally.reason = Blame(**failing);
      tally.message = (*failing)->message;
    }
  }
  return tally;
}

// Only somebody who changes the spec or a Secret can help.
bool IsStalled(const BackendView& view) {
  return view.problem != nullptr && view.problem->reason != reasons::kSecretNotRead;
}

Verdict Accepted(const api::ProfilingBackend& backend, const BackendView& view) {
  if (view.problem != nullptr) return {kFalse, view.problem->reason, view.problem->message};
  if (backend.spec.is_default && backend.meta.name != view.default_name) {
    return {kFalse, condition_reasons::kAnotherDefault,
            "spec.default: the older ProfilingBackend \"" + view.default_name +
                "\" is the default; this one only takes the profiles that name it"};
  }
  return {kTrue, condition_reasons::kAccepted, "the spec can be served"};
}

std::string WhoFails(const AgentTally& agents) {
  const api::ProfilingBackendStatus::Agents& counts = agents.counts;
  return std::to_string(counts.failing) + " of " +
         Count(counts.failing + counts.delivering, "agent") + " cannot deliver; node " +
         agents.failing_node + ": " + agents.message;
}

// Why the managed store does not run, if so.
std::optional<Verdict> StoreProblem(const api::ProfilingBackend& backend, const BackendView& view) {
  if (!view.apply_error.empty()) {
    return Verdict{kFalse, condition_reasons::kStoreNotApplied, view.apply_error};
  }
  const std::string name = (backend.spec.managed_store->volume ? "StatefulSet " : "Deployment ") +
                           StoreName(backend.meta.name);
  if (view.workload == nullptr)
    return Verdict{kFalse, condition_reasons::kStoreNotAvailable, name + " does not exist yet"};
  if (view.workload->ready == 0) {
    return Verdict{kFalse, condition_reasons::kStoreNotAvailable,
                   name + " has no available pod; look at its events"};
  }
  return std::nullopt;
}

// The first check that fails says why the backend is not ready.
Verdict Ready(const api::ProfilingBackend& backend, const BackendView& view,
              const AgentTally& agents) {
  if (view.problem != nullptr) return {kFalse, view.problem->reason, view.problem->message};
  if (backend.spec.managed_store) {
    if (auto problem = StoreProblem(backend, view)) return *std::move(problem);
  }
  if (agents.counts.failing > 0) return {kFalse, agents.reason, WhoFails(agents)};
  if (agents.counts.delivering > 0)
    return {kTrue, condition_reasons::kDelivering,
            "profiles of " + Count(agents.counts.delivering, "agent") + " are accepted"};
  if (backend.spec.managed_store)
    return {kTrue, condition_reasons::kStoreAvailable,
            "the store runs; no agent delivers profiles to it yet"};
  return {kUnknown, condition_reasons::kNotUsed, "no agent has delivered a profile to it yet"};
}

// False for those agents that fail for one of `blamed`; true when others hear from the server.
Verdict FromAgents(const AgentTally& agents, std::initializer_list<std::string_view> blamed) {
  int64_t answered = agents.counts.delivering;
  for (const auto& [reason, count] : agents.by_reason) {
    if (std::ranges::find(blamed, reason) != blamed.end())
      return {kFalse, reason, WhoFails(agents)};
    if (reason != reasons::kBackendUnreachable) answered += count;
  }
  if (answered > 0)
    return {kTrue, condition_reasons::kDelivering, Count(answered, "agent") + " had an answer"};
  return {kUnknown, condition_reasons::kNotUsed, "no agent has had an answer from it yet"};
}

Verdict Stalled(const BackendView& view) {
  if (IsStalled(view)) return {kTrue, view.problem->reason, view.problem->message};
  return {kFalse, condition_reasons::kNotStalled, "nothing waits for a change of spec or Secret"};
}

}  // namespace

api::ProfilingBackendStatus BackendStatus(const api::ProfilingBackend& backend,
                                          const BackendView& view, const StatusInput& input) {
  const api::ProfilingBackendStatus& before = backend.status;
  // What is wrong without any agent is known at once.
  if (!input.settled && !IsStalled(view)) return before;
  const AgentTally agents = TallyAgents(view.agents);
  api::ProfilingBackendStatus status;
  status.observed_generation = backend.meta.generation;
  const auto add = [&](std::string_view type, Verdict verdict) {
    status.conditions.push_back(MakeCondition(type, std::move(verdict), backend.meta.generation,
                                              before.conditions, input.now_ns));
  };
  add("Accepted", Accepted(backend, view));
  add("Ready", Ready(backend, view, agents));
  add("Reachable", FromAgents(agents, {reasons::kBackendUnreachable}));
  add("Accepting", FromAgents(agents, {reasons::kBackendUnauthorized, reasons::kBackendRefused}));
  add("Stalled", Stalled(view));
  status.endpoint = view.endpoint;
  status.agents = agents.counts;
  status.backlog = view.backlog;
  return status;
}

void AddBacklog(const api::Backlog& of_agent, api::Backlog& sum) {
  sum.profiles += of_agent.profiles;
  sum.bytes += of_agent.bytes;
  const int64_t oldest_ns = of_agent.oldest_ns - of_agent.oldest_ns % kNanosPerSecond;
  if (oldest_ns != 0 && (sum.oldest_ns == 0 || oldest_ns < sum.oldest_ns))
    sum.oldest_ns = oldest_ns;
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
