// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/reasons.h"
#include "operator/control/control_server.h"
#include "operator/controllers.h"
#include "operator/fleet_reader.h"
#include "operator/plan/assignment.h"
#include "operator/plan/unmet_wish.h"

namespace flamefleet {

Controller::Outcome NodeController::Assign(const std::string& node) {
  Outcome outcome;
  bool lacks_agent = false;
  FleetReader reader(context_.cache, context_.agents, context_.settings.ns);
  plan::NodeAssignment assignment;
  const auto pool = reader.NodeOf(node).pool;  // without it nobody says what may be profiled
  const auto views = reader.Views(context_.cache.pods.ListNode(node));
  for (const plan::PodView& view : views) {
    if (auto assigned = plan::AssignPod(*view.pod, *view.plan); assigned && pool != nullptr) {
      assignment.emplace(view.pod->meta.uid, *std::move(assigned));
    }
    const auto unmet = plan::UnmetWish(view);
    if (!unmet) continue;
    if (unmet->reason == reasons::kNoAgentPool) {
      lacks_agent = true;
      outcome.recheck_after = PatienceWith(node);
      if (outcome.recheck_after.count() > 0) continue;
    }
    if (outcome.recheck_after.count() == 0) outcome.recheck_after = kSayAgain;
    const bool warning = unmet->reason != reasons::kPaused;
    context_.events.Record(kPods, view.pod->meta,
                           {warning, std::string(unmet->reason), "Profile", unmet->message});
  }
  if (!lacks_agent) without_agent_since_ns_.erase(node);
  const std::string pool_name = pool != nullptr ? pool->meta.name : "";
  if (views.empty()) {
    context_.pod_sums.Forget(node);
  } else {
    const auto kept =
        context_.pod_sums.Set(node, pool_name, plan::SumUpPods(views, context_.clock.WallNanos()),
                              reader.NodeOf(node).report);
    if (kept.changed && pool != nullptr) outcome.concerns = {"pool/" + pool_name};
  }
  if (pool != nullptr && pool->spec.ProfilesHost()) {
    if (auto host = plan::AssignHost(node, reader.backends()))
      assignment.emplace(host->uid, *std::move(host));
  }
  if (auto kept = context_.agents.SetAssignment(node, std::move(assignment), pool_name)) {
    context_.assignments[node] = std::move(kept);
  } else {
    context_.assignments.erase(node);
  }
  return outcome;
}

std::chrono::nanoseconds NodeController::PatienceWith(const std::string& node) {
  const int64_t now_ns = context_.clock.MonotonicNanos();
  const auto [since, added] = without_agent_since_ns_.try_emplace(node, now_ns);
  const std::chrono::nanoseconds lacking(now_ns - since->second);
  return std::max(kAgentPatience - lacking, std::chrono::nanoseconds(0));
}

Result<Controller::Outcome> NodeController::Reconcile(const std::string& object,
                                                      const std::stop_token& /*stop*/) {
  return Assign(object);
}

}  // namespace flamefleet
