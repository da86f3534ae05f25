// SPDX-License-Identifier: Apache-2.0
#include "operator/controller_parts.h"
#include "operator/controllers.h"
#include "operator/fleet_reader.h"

namespace flamefleet {
namespace {

// Empty when pods of `ns` are seen.
std::string WhyNotWatched(const ClusterCache& cache, const std::string& ns) {
  if (cache.Watches(ns)) return "";
  std::string watched;
  for (const std::string& name : cache.watched())
    watched += (watched.empty() ? "" : ", ") + name;
  return "the operator watches pods of these namespaces only (--watch-namespace): " + watched;
}

}  // namespace

Result<Controller::Outcome> TargetController::Reconcile(const std::string& object,
                                                        const std::stop_token& stop) {
  const size_t slash = object.find('/');
  FF_CHECK(slash != std::string::npos);
  const ObjectKey key{object.substr(0, slash), object.substr(slash + 1)};
  const auto target = context_.cache.targets.Get(key);
  if (!target) context_.status.Forget(kProfilingTargets, key.ns, key.name);
  if (!target || target->meta.deleting) return Outcome{};

  FleetReader reader(context_.cache, context_.agents, context_.settings.ns);
  const auto views = reader.Views(context_.cache.pods.ListNamespace(key.ns),
                                  [&](const api::Pod& pod) { return plan::Matches(*target, pod); });
  const plan::StatusInput input = StatusInputNow(context_, target->status.observed_generation != 0);
  const api::ProfilingTargetStatus status = plan::TargetStatus(
      *target, views, reader.backends(), input, WhyNotWatched(context_.cache, key.ns));
  // What is not accepted is stalled after a while.
  const bool may_stall = std::ranges::any_of(
      status.conditions,
      [](const api::Condition& condition) { return condition.type == plan::kReconciling; });
  return WriteStatus(context_, kProfilingTargets, *target, status,
                     MustRecheck(views, input) || may_stall, stop);
}

}  // namespace flamefleet
