// SPDX-License-Identifier: Apache-2.0
#include "operator/control/control_server.h"
#include "operator/controller_parts.h"
#include "operator/controllers.h"
#include "operator/fleet_reader.h"
#include "operator/plan/names.h"

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
  const ObjectKey key{context_.settings.ns, plan::StoreName(backend.meta.name)};
  const auto deployment = context_.cache.deployments.Get(key);
  const auto service = context_.cache.services.Get(key);
  FF_RETURN_IF_ERROR(context_.applier.Apply(kDeployments,
                                            plan::StoreDeployment(backend, context_.settings),
                                            deployment ? &deployment->owned : nullptr, stop));
  return context_.applier.Apply(kServices, plan::StoreService(backend, context_.settings),
                                service ? &service->owned : nullptr, stop);
}

// The store of a backend that has no managed store any more.
Status BackendController::DeleteStore(const std::string& backend, const std::stop_token& stop) {
  const ObjectKey key{context_.settings.ns, plan::StoreName(backend)};
  if (IsOf(context_.cache.deployments.Get(key), backend)) {
    FF_RETURN_IF_ERROR(context_.applier.Delete(kDeployments, key.ns, key.name, stop));
  }
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
    context_.applier.Forget(kServices, context_.settings.ns, plan::StoreName(object));
    context_.status.Forget(kProfilingBackends, "", object);
    return Outcome{};
  }
  if (backend->meta.deleting) return Outcome{};  // the store goes with its owner

  const bool managed = backend->spec.managed_store.has_value();
  const Status applied = managed ? ApplyStore(*backend, stop) : DeleteStore(object, stop);
  SayIfRefused(context_, kProfilingBackends, backend->meta, applied);

  FleetReader reader(cache, context_.agents, context_.settings.ns);
  const plan::StatusInput input =
      StatusInputNow(context_, backend->status.observed_generation != 0);
  plan::BackendView view;
  const auto deployment = cache.deployments.Get({context_.settings.ns, plan::StoreName(object)});
  view.deployment = managed ? deployment.get() : nullptr;
  if (const plan::Backend* known = reader.backends().Find(object)) view.endpoint = known->endpoint;
  view.default_name = reader.backends().default_name();
  bool agent_away = false;
  // The view points into them.
  std::vector<std::shared_ptr<const plan::NodeReport>> reports;
  for (const auto& [node, assignment] : context_.assignments) {
    const auto& report = reports.emplace_back(context_.agents.ReportOf(node));
    agent_away = agent_away || !report || !report->connected;
    if (!plan::IsCurrent(report.get(), input.now_ns)) continue;
    auto collections = plan::HealthOf(object, assignment, *report);
    if (!collections.empty()) view.agents.push_back({node, std::move(collections)});
  }
  auto outcome =
      WriteStatus(context_, kProfilingBackends, *backend,
                  plan::BackendStatus(*backend, view, input), agent_away || !input.settled, stop);
  FF_RETURN_IF_ERROR(applied);  // the status is written all the same
  return outcome;
}

}  // namespace flamefleet
