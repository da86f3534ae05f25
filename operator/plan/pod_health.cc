// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/pod_health.h"

#include <algorithm>
#include <utility>

#include "base/reasons.h"

namespace flamefleet::plan {
namespace {

// Worse is greater.
int Gravity(PodState state) {
  switch (state) {
    case PodState::kStopped:
    case PodState::kProfiled:
      return 0;
    case PodState::kIdle:
      return 1;
    case PodState::kWaiting:
      return 2;
    case PodState::kFailing:
      return 3;
  }
  return 0;
}

PodHealth Because(PodState state, std::string_view reason, std::string message) {
  return {.state = state, .reason = std::string(reason), .message = std::move(message)};
}

std::string Join(const std::string& a, const std::string& b) {
  return a.empty() ? b : b.empty() || a == b ? a : a + ": " + b;
}

// Why nothing can be known of the pod's collections, if so.
std::optional<PodHealth> JudgeNode(const PodView& view, int64_t now_ns) {
  const api::Pod& pod = *view.pod;
  if (pod.node.empty())
    return Because(PodState::kWaiting, reasons::kPodNotRunning, "the pod is not scheduled yet");
  const NodeReport* report = view.node.report;
  // While agents are rolled out a node has none for a moment.
  const bool replaced = report != nullptr && !report->connected && IsCurrent(report, now_ns);
  if (!view.node.has_agent_pod && !replaced) {
    return Because(PodState::kFailing, reasons::kNoAgentPool,
                   "node " + pod.node + " runs no agent");
  }
  if (pod.phase == api::PodPhase::kPending) {
    return Because(PodState::kWaiting, reasons::kPodNotRunning, "the pod is starting");
  }
  if (IsCurrent(report, now_ns)) return std::nullopt;
  PodHealth health = report != nullptr && report->connected
                         ? Because(PodState::kWaiting, reasons::kWaitingForSamples,
                                   "the agent of node " + pod.node + " has just connected")
                         : Because(PodState::kFailing, reasons::kAgentNotConnected,
                                   "the agent of node " + pod.node + " is not connected");
  health.unknown = report == nullptr || !report->received;
  return health;
}

// All collections of one type of a pod are one profile: it is delivered when one of them delivers
// and the others have nothing to deliver.
PodHealth JudgeType(const PodView& view, ProfileType type,
                    const std::vector<const Collection*>& collections) {
  PodHealth result{.state = PodState::kWaiting};
  bool delivered = false;
  bool waiting = false;
  for (const Collection* collection : collections) {
    const auto found =
        view.node.report->collections.find({view.pod->meta.uid, collection->container, type});
    if (found == view.node.report->collections.end()) {
      waiting = true;
      continue;
    }
    const CollectionHealth& health = found->second;
    result.last_delivered_ns = std::max(result.last_delivered_ns, health.last_delivered_ns);
    if (health.state == CollectionState::kFailing) {
      result.state = PodState::kFailing;
      result.reason = health.reason;
      result.message = Join(collection->container, health.message);
      result.failing_since_ns = health.failing_since_ns;
    }
    if (health.state == CollectionState::kWaiting) waiting = true;
    if (health.state == CollectionState::kDelivering) result.delivering = true;
    if (health.last_delivered_ns != 0) delivered = true;
  }
  if (result.state == PodState::kFailing) return result;
  if (!waiting) {
    result.state = delivered ? PodState::kProfiled : PodState::kIdle;
    if (!delivered) result.message = "it has had nothing to deliver yet";
    return result;
  }
  result.reason = reasons::kWaitingForSamples;
  result.message = "the first profile is still to come";
  return result;
}

}  // namespace

bool IsCurrent(const NodeReport* report, int64_t now_ns) {
  if (report == nullptr || !report->received) return false;
  return report->connected || now_ns - report->disconnected_since_ns < kAgentGraceNs;
}

PodHealth JudgePod(const PodView& view, const std::function<bool(const Askers&)>& asked,
                   int64_t now_ns) {
  const PodPlan& plan = *view.plan;
  if (plan.vetoed)
    return Because(PodState::kStopped, reasons::kOptedOut, "pyroscope.io/scrape is \"false\"");
  if (!plan.paused_by.empty()) {
    return Because(PodState::kStopped, reasons::kPaused,
                   "ProfilingTarget \"" + plan.paused_by + "\" is paused");
  }
  PodHealth worst{.state = PodState::kProfiled};
  const auto take = [&](PodHealth health, std::string_view profile) {
    const int64_t last_delivered_ns = std::max(worst.last_delivered_ns, health.last_delivered_ns);
    const bool delivering = worst.delivering || health.delivering;
    if (Gravity(health.state) > Gravity(worst.state)) {
      worst = std::move(health);
      worst.profile = profile;
    }
    worst.last_delivered_ns = last_delivered_ns;
    worst.delivering = delivering;
  };
  for (const Refusal& refusal : plan.refusals) {
    if (asked(refusal.askers)) {
      take(Because(PodState::kFailing, refusal.problem.reason, refusal.problem.message),
           ProfileTypeName(refusal.type));
    }
  }
  if (std::optional<PodHealth> health = JudgeNode(view, now_ns)) {
    take(*std::move(health), "");
    return worst;
  }
  for (const ProfileType type : kProfileTypes) {
    std::vector<const Collection*> collections;
    for (const Collection& collection : plan.collections) {
      if (collection.type == type && asked(collection.askers)) collections.push_back(&collection);
    }
    if (!collections.empty()) take(JudgeType(view, type, collections), ProfileTypeName(type));
  }
  return worst;
}

}  // namespace flamefleet::plan
