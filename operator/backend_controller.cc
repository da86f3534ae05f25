// SPDX-License-Identifier: Apache-2.0
#include "operator/control/control_server.h"
#include "operator/controller_parts.h"
#include "operator/controllers.h"
#include "operator/fleet_reader.h"
#include "operator/plan/names.h"
#include "operator/security/store_keys.h"

namespace flamefleet {
namespace {

bool IsOf(const Store<OwnedWorkload>::Pointer& object, const std::string& backend) {
  if (!object) return false;
  const auto label = object->labels.find(std::string(api::kBackendLabel));
  return label != object->labels.end() && label->second == backend;
}

}  // namespace

Status BackendController::ApplyStore(const api::ProfilingBackend& backend,
                                     const std::stop_token& stop) {
  const Status keys = context_.store_keys.Sync(backend.meta.name, context_.cache.backends.List(),
                                               context_.cache.secrets.Known(), stop);
  // Without a credential for people the store takes profiles all the same.
  if (!keys.ok() && keys.code() != StatusCode::kInvalidArgument) return keys;
  const ObjectKey key{context_.settings.ns, plan::StoreName(backend.meta.name)};
  const bool with_volume = backend.spec.managed_store->volume.has_value();
  // One store at a time: the other kind goes first.
  FF_RETURN_IF_ERROR(DeleteWorkload(backend.meta.name, !with_volume, stop));
  const auto workload =
      (with_volume ? context_.cache.stateful_sets : context_.cache.deployments).Get(key);
  const auto service = context_.cache.services.Get(key);
  FF_RETURN_IF_ERROR(context_.applier.Apply(with_volume ? kStatefulSets : kDeployments,
                                            plan::StoreWorkload(backend, context_.settings),
                                            workload ? &workload->owned : nullptr, stop));
  FF_RETURN_IF_ERROR(context_.applier.Apply(kServices,
                                            plan::StoreService(backend, context_.settings),
                                            service ? &service->owned : nullptr, stop));
  return keys;
}

Status BackendController::DeleteWorkload(const std::string& backend, bool with_volume,
                                         const std::stop_token& stop) {
  const ObjectKey key{context_.settings.ns, plan::StoreName(backend)};
  const auto& store = with_volume ? context_.cache.stateful_sets : context_.cache.deployments;
  if (!IsOf(store.Get(key), backend)) return OkStatus();
  return context_.applier.Delete(with_volume ? kStatefulSets : kDeployments, key.ns, key.name,
                                 stop);
}

// The store of a backend that has no managed store any more. Its volume stays.
Status BackendController::DeleteStore(const std::string& backend, const std::stop_token& stop) {
  const ObjectKey key{context_.settings.ns, plan::StoreName(backend)};
  FF_RETURN_IF_ERROR(DeleteWorkload(backend, /*with_volume=*/false, stop));
  FF_RETURN_IF_ERROR(DeleteWorkload(backend, /*with_volume=*/true, stop));
  if (IsOf(context_.cache.services.Get(key), backend)) {
    return context_.applier.Delete(kServices, key.ns, key.name, stop);
  }
  return OkStatus();
}

Result<Controller::Outcome> BackendController::Reconcile(const std::string& object,
                                                         const std::stop_token& stop) {
  const ClusterCache& cache = context_.cache;
  const auto backend = cache.backends.Get({"", object});
  if (!backend) {
    context_.applier.Forget(kDeployments, context_.settings.ns, plan::StoreName(object));
    context_.applier.Forget(kStatefulSets, context_.settings.ns, plan::StoreName(object));
    context_.applier.Forget(kServices, context_.settings.ns, plan::StoreName(object));
    context_.status.Forget(kProfilingBackends, "", object);
    return Outcome{};
  }
  if (backend->meta.deleting) return Outcome{};  // the store goes with its owner

  const bool managed = backend->spec.managed_store.has_value();
  const Status applied = managed ? ApplyStore(*backend, stop) : DeleteStore(object, stop);
  SayIfRefused(context_, kProfilingBackends, backend->meta, applied);

  FleetReader reader(cache, context_.agents, context_.settings.ns);
  plan::StatusInput input = StatusInputNow(context_, backend->status.observed_generation != 0);
  plan::BackendView view;
  const bool with_volume = managed && backend->spec.managed_store->volume;
  const auto workload = (with_volume ? cache.stateful_sets : cache.deployments)
                            .Get({context_.settings.ns, plan::StoreName(object)});
  view.workload = managed ? workload.get() : nullptr;
  view.apply_error = applied.ok() ? "" : ErrorMessage(applied);
  if (const plan::Backend* known = reader.backends().Find(object)) view.endpoint = known->endpoint;
  view.problem = reader.backends().ProblemOf(object);
  view.default_name = reader.backends().default_name();
  bool agent_away = false;
  // The view points into them.
  std::vector<std::shared_ptr<const plan::NodeReport>> reports;
  for (const auto& [node, assignment] : context_.assignments) {
    const auto& report = reports.emplace_back(context_.agents.ReportOf(node));
    agent_away = agent_away || !report || !report->connected;
    if (!plan::IsCurrent(report.get(), input.now_ns)) continue;
    auto collections = plan::HealthOf(object, *assignment, *report);
    if (!collections.empty()) view.agents.push_back({node, std::move(collections)});
    if (const auto backlog = report->backlogs.find(object); backlog != report->backlogs.end())
      plan::AddBacklog(backlog->second, view.backlog);
  }
  input.settled = input.settled || !agent_away;  // nobody is on their way
  auto outcome =
      WriteStatus(context_, kProfilingBackends, *backend,
                  plan::BackendStatus(*backend, view, input), agent_away || !input.settled, stop);
  FF_RETURN_IF_ERROR(applied);  // the status is written all the same
  if (managed && outcome.ok() && outcome->recheck_after.count() == 0) return Outcome{kKeysInterval};
  return outcome;
}

}  // namespace flamefleet
