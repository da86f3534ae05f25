// SPDX-License-Identifier: Apache-2.0
#include "operator/control/control_server.h"
#include "operator/controller_parts.h"
#include "operator/controllers.h"
#include "operator/fleet_reader.h"
#include "operator/plan/assignment.h"
#include "operator/plan/names.h"

namespace flamefleet {
namespace {

plan::PoolView ViewOf(const ClusterCache& cache, FleetReader& reader, const std::string& pool) {
  plan::PoolView view;
  for (const FleetReader::Node* node : reader.NodesOfPool(pool)) {
    view.nodes.push_back({node->name, node->report.get(), node->agent_pod->ready});
    const auto annotated = [](const api::Pod& pod) { return !pod.annotations.empty(); };
    const auto pods = reader.Views(cache.pods.ListNode(node->name), annotated);
    view.pods.insert(view.pods.end(), pods.begin(), pods.end());
  }
  return view;
}

}  // namespace

void PoolController::Configure(const api::AgentPool& pool) {
  const FleetReader reader(context_.cache, context_.agents, context_.settings.ns);
  context_.agents.SetConfig(pool.meta.name, plan::ConfigOf(pool, reader.backends()));
}

Result<Controller::Outcome> PoolController::Reconcile(const std::string& object,
                                                      const std::stop_token& stop) {
  const ClusterCache& cache = context_.cache;
  const auto pool = cache.pools.Get({"", object});
  if (!pool) {
    context_.applier.Forget(kDaemonSets, context_.settings.ns, plan::AgentDaemonSetName(object));
    context_.status.Forget(kAgentPools, "", object);
    return Outcome{};
  }
  if (pool->meta.deleting) return Outcome{};  // the DaemonSet goes with its owner

  Configure(*pool);
  const std::string& ns = context_.settings.ns;
  const auto live = cache.daemon_sets.Get({ns, plan::AgentDaemonSetName(object)});
  const Status applied =
      context_.applier.Apply(kDaemonSets, plan::AgentDaemonSet(*pool, context_.settings),
                             live ? &live->owned : nullptr, stop);
  SayIfRefused(context_, kAgentPools, pool->meta, applied);

  FleetReader reader(cache, context_.agents, ns);
  plan::PoolView view = ViewOf(cache, reader, object);
  view.daemon_set = live.get();
  const plan::StatusInput input = StatusInputNow(context_, pool->status.observed_generation != 0);
  const api::AgentPoolStatus status = plan::PoolStatus(*pool, view, input);
  const bool agent_away = std::ranges::any_of(view.nodes, [](const plan::PoolView::Node& node) {
    return node.report == nullptr || !node.report->connected;
  });
  auto outcome = WriteStatus(context_, kAgentPools, *pool, status,
                             agent_away || MustRecheck(view.pods, input), stop);
  FF_RETURN_IF_ERROR(applied);  // the status is written all the same
  return outcome;
}

}  // namespace flamefleet
