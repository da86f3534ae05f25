// SPDX-License-Identifier: Apache-2.0
// OfflineFleet: manifests as the operator would see them in a cluster: our kinds, and the pods that
// workloads would make of their templates.
//
// Thread: any; pure. What cannot be decoded becomes a Finding and is left out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/api/agent_pool.h"
#include "operator/api/pod.h"
#include "operator/api/profiling_backend.h"
#include "operator/api/profiling_target.h"
#include "operator/render/manifests.h"
#include "operator/render/schema.h"

namespace flamefleet::render {

struct OfflinePod {
  Source source;
  std::string kind;  // "Pod", or the workload whose template it is
  api::Pod pod;      // of a template: named like the workload
  bool from_template = false;
  api::StringMap node_selector;
};

struct OfflineFleet {
  std::vector<api::AgentPool> pools;
  std::vector<api::ProfilingBackend> backends;
  std::vector<api::ProfilingTarget> targets;
  std::vector<OfflinePod> pods;
  std::map<std::string, api::StringMap> namespaces;  // labels of those that have a manifest
};

// `findings` gets what is wrong.
OfflineFleet DecodeManifests(const std::vector<Manifest>& manifests, const Schemas& schemas,
                             std::vector<Finding>& findings);

}  // namespace flamefleet::render
