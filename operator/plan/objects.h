// SPDX-License-Identifier: Apache-2.0
// The objects that the operator makes: complete intents for server-side apply. Each belongs to the
// object it was made for (ownerReferences), so it goes when that goes. Labels and annotations of
// the owner are never copied: tools that track objects by labels would take ours for theirs.
//
// Thread: any; pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "operator/api/agent_pool.h"
#include "operator/api/profiling_backend.h"

namespace flamefleet::plan {

// What all objects share.
struct ObjectSettings {
  std::string ns;                 // the operator's namespace
  std::string image;              // of agents whose pool names none, and of stores
  std::string image_pull_policy;  // for that image; empty: Kubernetes' default
};

// The DaemonSet of a pool.
nlohmann::json AgentDaemonSet(const api::AgentPool& pool, const ObjectSettings& settings);

// The embedded store of a backend with spec.store.managed: a StatefulSet with a volume of its own,
// or a Deployment without.
nlohmann::json StoreWorkload(const api::ProfilingBackend& backend, const ObjectSettings& settings);
nlohmann::json StoreService(const api::ProfilingBackend& backend, const ObjectSettings& settings);
// The Secret with which people read from it; `ns` is the operator's namespace.
nlohmann::json StoreReader(const api::ProfilingBackend& backend, const std::string& ns,
                           const api::StringMap& values);

}  // namespace flamefleet::plan
