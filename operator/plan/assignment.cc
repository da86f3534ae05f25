// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/assignment.h"

#include <algorithm>
#include <tuple>

namespace flamefleet::plan {

std::optional<PodAssignment> AssignPod(const api::Pod& pod, const PodPlan& plan) {
  if (plan.collections.empty() || !IsLive(pod)) return std::nullopt;
  PodAssignment assignment{
      .uid = pod.meta.uid, .ns = pod.meta.ns, .name = pod.meta.name, .ip = pod.ip};
  for (const Collection& collection : plan.collections) {
    if (collection.pull) {
      if (pod.phase == api::PodPhase::kPending) continue;
      assignment.pulls.push_back({.type = collection.type,
                                  .port = collection.pull->port,
                                  .tls = collection.pull->tls,
                                  .path = collection.pull->path,
                                  .parameters = collection.pull->parameters,
                                  .interval_ns = collection.pull->interval_ns,
                                  .timeout_ns = collection.pull->timeout_ns,
                                  .container = collection.container,
                                  .backend = collection.backend,
                                  .labels = collection.labels});
      continue;
    }
    const auto container =
        std::ranges::find(pod.containers, collection.container, &api::Container::name);
    assignment.containers.push_back({.name = collection.container,
                                     .id = container == pod.containers.end() ? "" : container->id,
                                     .backend = collection.backend,
                                     .labels = collection.labels,
                                     .thread_labels = collection.thread_labels});
  }
  if (assignment.containers.empty() && assignment.pulls.empty()) return std::nullopt;
  return assignment;
}

std::optional<PodAssignment> AssignHost(const std::string& node, const BackendTable& backends) {
  if (backends.WhyUnusable("")) return std::nullopt;
  PodAssignment host;
  host.containers.push_back({.backend = backends.default_name(), .labels = {{"node", node}}});
  return host;
}

bool IsOlder(const api::AgentPool& pool, const api::AgentPool& than) {
  return std::tie(pool.meta.creation_ns, pool.meta.name) <
         std::tie(than.meta.creation_ns, than.meta.name);
}

AgentConfig ConfigOf(const api::AgentPool& pool, const BackendTable& backends) {
  return {.sampling_frequency_hz = pool.spec.sampling_frequency_hz,
          .stack_depth = pool.spec.stack_depth,
          .inlines = pool.spec.inlines,
          .debuginfod_urls = pool.spec.debuginfod_urls,
          .backends = backends.All(),
          .cpu_budget_millicores = pool.spec.cpu_budget_millicores};
}

}  // namespace flamefleet::plan
