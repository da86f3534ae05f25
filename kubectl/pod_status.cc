// SPDX-License-Identifier: Apache-2.0
#include "kubectl/pod_status.h"

#include <algorithm>
#include <utility>

#include "base/reasons.h"
#include "operator/api/well_known.h"
#include "operator/plan/assignment.h"
#include "operator/plan/condition_reasons.h"
#include "operator/plan/pod_health.h"
#include "operator/plan/unmet_wish.h"

namespace flamefleet::kubectl {
namespace {

// Stands for the default backend where backends may not be read.
constexpr const char* kAssumedDefault = "the default backend";

// What one status says of a pod.
struct Verdict {
  State state = State::kUnknown;
  std::string profile;
  std::string reason;
  std::string message;
  int64_t since_ns = 0;
};

// Worse is greater.
int Gravity(State state) {
  switch (state) {
    case State::kFailing:
      return 5;
    case State::kUnknown:
      return 4;
    case State::kWaiting:
      return 3;
    case State::kCollecting:
      return 2;
    case State::kIdle:
      return 1;
    default:
      return 0;
  }
}

// Pods of a status that names those that fail and counts the others.
struct Counted {
  std::string who;  // "ProfilingTarget payments"
  bool written = false;
  const api::PodCounts& counts;
  const std::vector<api::FailingPod>& failing;
  const api::Condition* refused = nullptr;  // why no pod counts
};

// The condition `Accepted` of a target that cannot be served; nullptr: it can.
const api::Condition* RefusalOf(const api::ProfilingTarget& target) {
  const auto& conditions = target.status.conditions;
  const auto accepted = std::ranges::find(conditions, "Accepted", &api::Condition::type);
  const bool refused = accepted != conditions.end() && accepted->status == "False";
  return refused ? &*accepted : nullptr;
}

Verdict VerdictOf(const Counted& status, const api::Pod& pod) {
  if (!status.written) {
    return {.state = State::kUnknown,
            .message = status.who + " has no status yet: does the operator run?"};
  }
  const auto failing = std::ranges::find_if(status.failing, [&](const api::FailingPod& entry) {
    return entry.name == pod.meta.name && (entry.ns.empty() || entry.ns == pod.meta.ns);
  });
  if (failing != status.failing.end()) {
    return {State::kFailing, failing->profile, failing->reason, failing->message,
            failing->since_ns};
  }
  if (status.refused != nullptr) {
    return {.state = State::kFailing,
            .reason = status.refused->reason,
            .message = status.who + ": " + status.refused->message};
  }
  const api::PodCounts& counts = status.counts;
  const int64_t others = counts.matched - counts.failing;
  if (counts.failing > static_cast<int64_t>(status.failing.size())) {
    return {.state = State::kUnknown,
            .message = std::to_string(counts.failing) + " pods of " + status.who +
                       " fail and its status names only " + std::to_string(status.failing.size())};
  }
  if (others <= 0) {
    return {.state = State::kWaiting,
            .reason = std::string(reasons::kWaitingForSamples),
            .message = "the status of " + status.who + " does not count the pod yet"};
  }
  if (counts.profiled == others) return {.state = State::kProfiled};
  if (counts.idle == others)
    return {.state = State::kIdle, .message = "it has had nothing to deliver yet"};
  if (counts.waiting == others) {
    return {.state = State::kWaiting,
            .reason = std::string(reasons::kWaitingForSamples),
            .message = "the first profile is still to come"};
  }
  return {.state = State::kCollecting,
          .message = "of " + std::to_string(others) + " pods of " + status.who + ", " +
                     std::to_string(counts.profiled) + " are profiled, " +
                     std::to_string(counts.idle) + " idle, " + std::to_string(counts.waiting) +
                     " wait for a first profile"};
}

template <typename T>
const T* FindByName(const std::vector<T>& objects, const std::string& name,
                    const std::string& ns = "") {
  const auto found = std::ranges::find_if(
      objects, [&](const T& object) { return object.meta.name == name && object.meta.ns == ns; });
  return found == objects.end() ? nullptr : &*found;
}

class Judge {
 public:
  explicit Judge(const Snapshot& snapshot)
      : snapshot_(snapshot),
        backend_objects_(Backends()),
        backends_(Pointers(), snapshot.system_ns) {}

  PodStatus Of(const api::Pod& pod) const {
    PodStatus out{.pod = &pod};
    const api::AgentPool* pool = PoolOf(pod);
    if (pool != nullptr) {
      out.pool = pool->meta.name;
      const auto& nodes = pool->status.problem_nodes;
      const auto problem = std::ranges::find(nodes, pod.node, &api::ProblemNode::name);
      if (problem != nodes.end()) out.node_problem = problem->reason + ": " + problem->message;
    }
    out.plan = PlanOf(pod, pool);
    Verdict verdict = VerdictFor(pod, out.plan, pool);
    out.state = verdict.state;
    out.profile = std::move(verdict.profile);
    out.reason = std::move(verdict.reason);
    out.message = std::move(verdict.message);
    out.since_ns = verdict.since_ns;
    return out;
  }

 private:
  // Secrets are the operator's business: what is wrong with them is in the statuses.
  std::vector<api::ProfilingBackend> Backends() const {
    std::vector<api::ProfilingBackend> backends;
    if (snapshot_.backends) {
      backends = *snapshot_.backends;
    } else {
      backends.emplace_back().meta.name = kAssumedDefault;
      backends.back().spec.is_default = true;
      for (const api::ProfilingTarget& target : snapshot_.targets) {
        if (!target.spec.backend.empty()) backends.emplace_back().meta.name = target.spec.backend;
      }
    }
    for (api::ProfilingBackend& backend : backends) {
      backend.spec.auth = {};
      backend.spec.tls.ca.reset();
    }
    return backends;
  }

  std::vector<const api::ProfilingBackend*> Pointers() const {
    std::vector<const api::ProfilingBackend*> pointers;
    for (const api::ProfilingBackend& backend : backend_objects_)
      pointers.push_back(&backend);
    return pointers;
  }

  // As the operator: the oldest of those with an agent on the node. nullptr: none, or not known.
  const api::AgentPool* PoolOf(const api::Pod& pod) const {
    if (!snapshot_.pools || pod.node.empty()) return nullptr;
    if (!snapshot_.agents)
      return snapshot_.pools->size() == 1 ? &snapshot_.pools->front() : nullptr;
    const auto agents = snapshot_.agents->find(pod.node);
    if (agents == snapshot_.agents->end()) return nullptr;
    const api::AgentPool* oldest = nullptr;
    for (const std::string& name : agents->second) {
      const api::AgentPool* pool = FindByName(*snapshot_.pools, name);
      if (pool == nullptr || pool->meta.deleting) continue;
      if (oldest == nullptr || plan::IsOlder(*pool, *oldest)) oldest = pool;
    }
    return oldest;
  }

  plan::PodPlan PlanOf(const api::Pod& pod, const api::AgentPool* pool) const {
    std::vector<const api::ProfilingTarget*> targets;
    for (const api::ProfilingTarget& target : snapshot_.targets) {
      if (plan::Matches(target, pod)) targets.push_back(&target);
    }
    static const api::AgentPoolSpec kDefaults;
    const api::AgentPoolSpec& spec = pool != nullptr ? pool->spec : kDefaults;
    const bool may_opt_in = MayOptIn(spec.opt_in, pod.meta.ns);
    return plan::PlanPod({pod, std::move(targets),
                          may_opt_in ? spec.opt_in.families : api::AnnotationFamilies(), backends_,
                          may_opt_in && spec.ProfilesAllPods()});
  }

  bool MayOptIn(const api::OptIn& opt_in, const std::string& ns) const {
    api::StringMap labels;
    if (const auto found = snapshot_.namespaces.find(ns); found != snapshot_.namespaces.end())
      labels = found->second;
    labels[api::kNamespaceNameLabel] = ns;
    return opt_in.namespaces.Matches(labels);
  }

  Verdict VerdictFor(const api::Pod& pod, const plan::PodPlan& plan,
                     const api::AgentPool* pool) const {
    const auto because = [](State state, std::string_view reason, std::string message) {
      return Verdict{.state = state, .reason = std::string(reason), .message = std::move(message)};
    };
    if (!plan::IsLive(pod)) return because(State::kEnded, reasons::kPodNotRunning, "it has ended");
    const bool has_agent =
        !snapshot_.agents || (!pod.node.empty() && snapshot_.agents->contains(pod.node));
    const plan::PodView view{&pod, &plan, {.has_agent_pod = has_agent, .report = nullptr}};
    const bool stopped = plan.vetoed || !plan.paused_by.empty();
    if (!stopped && plan.collections.empty() && plan.refusals.empty()) {
      if (const auto unmet = plan::UnmetWish(view))
        return because(State::kFailing, unmet->reason, unmet->message);
      return because(State::kNotRequested, reasons::kNotRequested,
                     "no ProfilingTarget selects it and no annotation opts it in");
    }
    const plan::PodHealth health = plan::JudgePod(
        view, [](const plan::Askers&) { return true; }, snapshot_.now_ns);
    // Without an agent's report the plan says only what is wrong before an agent is asked.
    const bool ask_statuses = health.state == plan::PodState::kFailing && health.unknown;
    if (ask_statuses) return FromStatuses(pod, plan, pool);
    const State state = health.state == plan::PodState::kStopped   ? State::kStopped
                        : health.state == plan::PodState::kFailing ? State::kFailing
                                                                   : State::kWaiting;
    Verdict verdict = because(state, health.reason, health.message);
    verdict.profile = health.profile;
    return verdict;
  }

  // The worst that the statuses of all who ask say.
  Verdict FromStatuses(const api::Pod& pod, const plan::PodPlan& plan,
                       const api::AgentPool* pool) const {
    plan::Askers askers;
    for (const plan::Collection& collection : plan.collections)
      askers.Add(collection.askers);
    Verdict worst{.state = State::kProfiled};
    const auto take = [&](Verdict verdict) {
      if (Gravity(verdict.state) > Gravity(worst.state)) worst = std::move(verdict);
    };
    for (const std::string& name : askers.targets) {
      const api::ProfilingTarget* target = FindByName(snapshot_.targets, name, pod.meta.ns);
      FF_CHECK(target != nullptr);  // the plan was made of these
      take(VerdictOf({"ProfilingTarget " + name, target->status.observed_generation != 0,
                      target->status.pods, target->status.failing_pods, RefusalOf(*target)},
                     pod));
    }
    if (!askers.annotations && !askers.pool) return worst;
    if (pool == nullptr) {
      take({.state = State::kUnknown,
            .message = "what its annotations ask for is in the status of the AgentPool of its "
                       "node, which is not known"});
      return worst;
    }
    take(VerdictOf({"AgentPool " + pool->meta.name, pool->status.observed_generation != 0,
                    pool->status.annotated_pods, pool->status.failing_pods},
                   pod));
    return worst;
  }

  const Snapshot& snapshot_;
  const std::vector<api::ProfilingBackend> backend_objects_;
  const plan::BackendTable backends_;
};

// What somebody who looks for a pod should know of its namespace's targets.
void AddNotes(const Snapshot& snapshot, std::vector<std::string>& notes) {
  for (const api::ProfilingTarget& target : snapshot.targets) {
    const std::string who = "ProfilingTarget " + target.meta.ns + "/" + target.meta.name;
    if (target.status.observed_generation < target.meta.generation) {
      notes.push_back(who + ": the operator has not seen its last change: does it run?");
      continue;
    }
    for (const api::Condition& condition : target.status.conditions) {
      if (condition.type == "Ready" && condition.reason == plan::condition_reasons::kNoPods)
        notes.push_back(who + " selects no pod: look at spec.selector");
    }
  }
  if (snapshot.pools && snapshot.pools->empty())
    notes.emplace_back("there is no AgentPool: no node runs an agent");
  if (snapshot.pools && !snapshot.pools->empty() && snapshot.agents && snapshot.agents->empty()) {
    notes.push_back("no agent runs in namespace " + snapshot.system_ns +
                    ": if Flamefleet runs in another one, --system-namespace names it");
  }
}

}  // namespace

std::string_view StateName(State state) {
  switch (state) {
    case State::kProfiled:
      return "Profiled";
    case State::kIdle:
      return "Idle";
    case State::kCollecting:
      return "Collecting";
    case State::kWaiting:
      return "Waiting";
    case State::kUnknown:
      return "Unknown";
    case State::kFailing:
      return "Failing";
    case State::kStopped:
      return "Stopped";
    case State::kNotRequested:
      return "NotRequested";
    case State::kEnded:
      return "Ended";
  }
  return "";
}

bool IsFine(State state) {
  return state == State::kProfiled || state == State::kIdle || state == State::kCollecting ||
         state == State::kWaiting;
}

std::vector<PodStatus> JudgePods(const Snapshot& snapshot, std::vector<std::string>& notes) {
  const Judge judge(snapshot);
  std::vector<PodStatus> all;
  all.reserve(snapshot.pods.size());
  for (const api::Pod& pod : snapshot.pods)
    all.push_back(judge.Of(pod));
  AddNotes(snapshot, notes);
  return all;
}

}  // namespace flamefleet::kubectl
