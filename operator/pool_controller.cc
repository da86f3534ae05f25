// SPDX-License-Identifier: Apache-2.0
#include "operator/control/control_server.h"
#include "operator/controller_parts.h"
#include "operator/controllers.h"
#include "operator/fleet_reader.h"
#include "operator/plan/assignment.h"
#include "operator/plan/names.h"

namespace flamefleet {
namespace {

plan::PoolView ViewOf(FleetReader& reader, const ControllerContext& context,
                      const api::AgentPool& pool) {
  plan::PoolView view;
  PodSums& sums = context.pod_sums;
  for (const FleetReader::Node* node : reader.NodesOfPool(pool.meta.name)) {
    const bool own = node->pool == nullptr || node->pool->meta.name == pool.meta.name;
    view.nodes.push_back({node->name, node->report.get(),
                          node->agent_pod != nullptr && node->agent_pod->ready,
                          own ? "" : node->pool->meta.name});
    if (!own) continue;
    const plan::NodePods* sum = sums.Find(node->name, pool.meta.name, node->report);
    if (sum == nullptr) {
      const auto views = reader.Views(context.cache.pods.ListNode(node->name));
      sum = &sums.Set(node->name, pool.meta.name, plan::SumUpPods(views, context.clock.WallNanos()),
                      node->report)
                 .sum;
      reader.DropPlans();
    }
    view.pods.push_back(sum);
  }
  return view;
}

// What the cluster says about the DaemonSet, as long as it is held.
struct DaemonSetView {
  Store<OwnedWorkload>::Pointer live;
  Store<api::ObjectEvent>::Pointer refused_pods;
  std::vector<Store<api::AgentPod>::Pointer> pods;

  DaemonSetView(const ClusterCache& cache, const std::string& ns, const std::string& pool)
      : live(cache.daemon_sets.Get({ns, plan::AgentDaemonSetName(pool)})) {
    if (live == nullptr) return;
    for (auto& event : cache.refused_pods.ListNamespace(ns)) {
      if (event->object_uid != live->meta.uid) continue;
      if (refused_pods == nullptr || refused_pods->last_ns < event->last_ns)
        refused_pods = std::move(event);
    }
    for (auto& pod : cache.agent_pods.ListNamespace(ns)) {
      if (pod->pool == pool) pods.push_back(std::move(pod));
    }
  }

  void AddTo(plan::PoolView& view) const {
    view.daemon_set = live.get();
    view.refused_pods = refused_pods.get();
    for (const auto& pod : pods)
      view.agent_pods.push_back(pod.get());
  }
};

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
  const DaemonSetView daemon_set(cache, ns, object);
  const Status applied =
      context_.applier.Apply(kDaemonSets, plan::AgentDaemonSet(*pool, context_.settings),
                             daemon_set.live ? &daemon_set.live->owned : nullptr, stop);
  SayIfRefused(context_, kAgentPools, pool->meta, applied);

  FleetReader reader(cache, context_.agents, ns);
  plan::PoolView view = ViewOf(reader, context_, *pool);
  daemon_set.AddTo(view);
  if (pool->spec.ProfilesHost()) view.host_problem = reader.backends().WhyUnusable("");
  view.selector_unread = !pool->spec.opt_in.namespaces.empty() && !cache.ReadsNamespaces();
  if (applied.code() == StatusCode::kInvalidArgument ||
      applied.code() == StatusCode::kPermissionDenied)
    view.refusal = ErrorMessage(applied);
  const plan::StatusInput input = StatusInputNow(context_, pool->status.observed_generation > 0);
  const api::AgentPoolStatus status = plan::PoolStatus(*pool, view, input);
  const bool agent_away = std::ranges::any_of(view.nodes, [](const plan::PoolView::Node& node) {
    return node.report == nullptr || !node.report->connected;
  });
  auto outcome =
      WriteStatus(context_, kAgentPools, *pool, status, agent_away || !input.settled, stop);
  FF_RETURN_IF_ERROR(applied);  // the status is written all the same
  return outcome;
}

}  // namespace flamefleet
