// SPDX-License-Identifier: Apache-2.0
// JudgePods: is each pod profiled, and why not? What the operator would do with a pod is decided by
// operator/plan, as in the operator itself; whether profiles are delivered is in the statuses of
// ProfilingTargets and AgentPools. Those name the pods that fail and count the others: where the
// counts do not say which pod is which, the state is kCollecting and the message has the counts.
//
// Thread: any; pure. A PodStatus is valid as long as its snapshot.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kubectl/snapshot.h"
#include "operator/plan/pod_plan.h"

namespace flamefleet::kubectl {

enum class State {
  kProfiled,      // every wanted profile is delivered
  kIdle,          // works; the pod has had nothing to deliver yet
  kCollecting,    // does not fail: profiled, idle or waiting, but no status says which of these
  kWaiting,       // nothing is wrong; a first profile is still to come
  kUnknown,       // the operator has not said anything of it
  kFailing,       // somebody asks for profiles, and not all of them are delivered
  kStopped,       // vetoed by its owner, or paused
  kNotRequested,  // nobody asks
  kEnded,         // the pod is over
};
std::string_view StateName(State state);

struct PodStatus {
  const api::Pod* pod = nullptr;
  std::string pool;  // that covers its node; empty: none, or not known
  plan::PodPlan plan;
  State state = State::kUnknown;
  std::string profile;  // that fails; empty: all of the pod
  std::string reason;   // one of base/reasons.h; may be empty
  std::string message;
  int64_t since_ns = 0;      // wall clock, when it began to fail; 0: not known
  std::string node_problem;  // what the agent of its node lacks; may be empty
};

// `notes` gets what is to be said beside the pods: targets without pods, an operator that is
// silent.
std::vector<PodStatus> JudgePods(const Snapshot& snapshot, std::vector<std::string>& notes);

// Nothing keeps the pod from being profiled.
bool IsFine(State state);

}  // namespace flamefleet::kubectl
