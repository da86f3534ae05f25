// SPDX-License-Identifier: Apache-2.0
#include "operator/control/control_server.h"
#include "operator/controllers.h"
#include "operator/fleet_reader.h"
#include "operator/plan/assignment.h"
#include "operator/plan/unmet_wish.h"

namespace flamefleet {

void NodeController::Assign(const std::string& node) {
  FleetReader reader(context_.cache, context_.agents, context_.settings.ns);
  plan::NodeAssignment assignment;
  const auto pool = reader.NodeOf(node).pool;  // without it nobody says what may be profiled
  const auto any = [](const api::Pod&) { return true; };
  for (const plan::PodView& view : reader.Views(context_.cache.pods.ListNode(node), any)) {
    if (auto assigned = plan::AssignPod(*view.pod, *view.plan); assigned && pool != nullptr) {
      assignment.emplace(view.pod->meta.uid, *std::move(assigned));
    }
    if (const auto unmet = plan::UnmetWish(*view.plan)) {
      context_.events.Record(kPods, view.pod->meta,
                             {true, std::string(unmet->reason), "Profile", unmet->message});
    }
  }
  if (assignment.empty()) {
    context_.assignments.erase(node);
  } else {
    context_.assignments[node] = assignment;
  }
  context_.agents.SetAssignment(node, std::move(assignment), pool ? pool->meta.name : "");
}

Result<Controller::Outcome> NodeController::Reconcile(const std::string& object,
                                                      const std::stop_token& /*stop*/) {
  Assign(object);
  return Outcome{};
}

}  // namespace flamefleet
