// SPDX-License-Identifier: Apache-2.0
// A small language for plan tests: pods, targets and backends in one line each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "operator/api/pod.h"
#include "operator/api/profiling_backend.h"
#include "operator/api/profiling_target.h"
#include "operator/plan/pod_plan.h"

namespace flamefleet::plan {

inline api::Container MainContainer(const std::string& name,
                                    std::vector<api::ContainerPort> ports = {}) {
  return {.name = name, .id = "id-" + name, .running = true, .ports = std::move(ports)};
}

// A running pod of namespace "shop" on node "n1" with one container "app" that declares port 6060
// as "pprof".
inline api::Pod RunningPod(const std::string& name = "p", StringMap annotations = {}) {
  api::Pod pod;
  pod.meta.ns = "shop";
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  pod.node = "n1";
  pod.ip = "10.0.0.1";
  pod.ready = true;
  pod.phase = api::PodPhase::kRunning;
  pod.workload_kind = "Deployment";
  pod.workload_name = "checkout";
  pod.labels = {{"app", "checkout"}, {"version", "v7"}, {"app.kubernetes.io/version", "7"}};
  pod.annotations = std::move(annotations);
  pod.containers = {MainContainer("app", {{"pprof", 6060}})};
  return pod;
}

inline api::ProfilingTarget Target(const std::string& name,
                                   std::vector<api::ProfileSpec> profiles) {
  api::ProfilingTarget target;
  target.meta.ns = "shop";
  target.meta.name = name;
  target.meta.generation = 1;
  target.spec.profiles = std::move(profiles);
  return target;
}

inline api::ProfilingBackend DefaultBackend() {
  api::ProfilingBackend backend;
  backend.meta.name = "default";
  backend.meta.uid = "uid-backend";
  backend.meta.generation = 1;
  backend.spec.is_default = true;
  backend.spec.managed_store = api::ManagedStore{.retention_ns = 72 * 3600 * kNanosPerSecond};
  return backend;
}

inline BackendTable DefaultBackends() {
  const api::ProfilingBackend backend = DefaultBackend();
  return BackendTable({&backend}, "flamefleet-system");
}

}  // namespace flamefleet::plan
