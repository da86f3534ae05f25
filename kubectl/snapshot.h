// SPDX-License-Identifier: Apache-2.0
// Snapshot: what the cluster says about the profiling of some pods, as far as the user may read it.
// Who has no more than Kubernetes' role "view" in a namespace may not read pools, backends or
// agents: what is not known is absent here, and a note says what is assumed instead.
//
// Thread: one. Errors: of what nothing can be said without: pods and ProfilingTargets.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kubectl/cluster.h"
#include "kubectl/workload_name.h"
#include "operator/api/agent_pool.h"
#include "operator/api/pod.h"
#include "operator/api/profiling_backend.h"
#include "operator/api/profiling_target.h"

namespace flamefleet::kubectl {

struct Snapshot {
  int64_t now_ns = 0;     // wall clock
  std::string system_ns;  // where Flamefleet runs
  std::vector<api::Pod> pods;
  std::vector<api::ProfilingTarget> targets;                   // of their namespaces
  std::optional<std::vector<api::AgentPool>> pools;            // absent: may not be read
  std::optional<std::vector<api::ProfilingBackend>> backends;  // absent: may not be read
  // Names of the pools that have an agent on a node, by node; absent: may not be read.
  std::optional<std::map<std::string, std::vector<std::string>>> agents;
  std::map<std::string, api::StringMap> namespaces;  // labels, where a pool selects by them
  std::vector<std::string> notes;
};

struct SnapshotScope {
  std::string ns;                        // empty: all namespaces
  std::optional<WorkloadName> workload;  // absent: every pod
};

// kNotFound: there is no such pod, or the workload makes none.
Result<Snapshot> TakeSnapshot(Cluster& cluster, const SnapshotScope& scope);

// What Flamefleet said on the pod lately, the newest last: "2026-11-30T07:00:00Z InvalidAnnotation:
// ...". A note when events may not be read.
std::vector<std::string> EventsOf(Cluster& cluster, const api::Pod& pod,
                                  std::vector<std::string>& notes);

}  // namespace flamefleet::kubectl
