// SPDX-License-Identifier: Apache-2.0
// JudgePod: is a pod profiled? From what was planned for it and what the agent of its node reported
// as delivered.
//
// Thread: any; pure: the time is an input.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "operator/api/pod.h"
#include "operator/plan/fleet.h"
#include "operator/plan/pod_plan.h"

namespace flamefleet::plan {

// An agent that is away for less is taken at its last word: it restarts, or the operator did.
inline constexpr int64_t kAgentGraceNs = 60'000'000'000;

// What the operator knows of the node of a pod.
struct NodeView {
  bool has_agent_pod = false;          // of any pool
  const NodeReport* report = nullptr;  // nullptr: no agent connected since the operator began
};

struct PodView {
  const api::Pod* pod = nullptr;
  const PodPlan* plan = nullptr;
  NodeView node;
};

enum class PodState {
  kProfiled,  // every wanted profile was delivered
  kIdle,      // works; the pod has had nothing to deliver yet, such as no use of a CPU
  kWaiting,   // nothing is wrong; a first profile is still to come
  kFailing,
  kStopped,  // vetoed by its owner or paused: not counted
};

struct PodHealth {
  PodState state = PodState::kWaiting;
  // Of what is not profiled, the first by gravity, then by type.
  std::string profile;  // profile type; empty: all of the pod
  std::string reason;
  std::string message;
  int64_t failing_since_ns = 0;   // as the agent says; 0: it does not
  int64_t last_delivered_ns = 0;  // the newest of the wanted profiles; 0: none
  bool delivering = false;        // a wanted profile reaches its backend
  bool unknown = false;           // the agent has not said anything yet
};

// `asked` selects the askers whose profiles count: those of one target, or of the annotations.
PodHealth JudgePod(const PodView& view, const std::function<bool(const Askers&)>& asked,
                   int64_t now_ns);

// True while what the agent said last may still be believed.
bool IsCurrent(const NodeReport* report, int64_t now_ns);

}  // namespace flamefleet::plan
