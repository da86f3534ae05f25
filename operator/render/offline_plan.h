// SPDX-License-Identifier: Apache-2.0
// PlanOffline: what the operator would do in a cluster that holds these objects and nothing else.
//
// Thread: any; pure: operator/plan decides, as in a cluster.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/plan/objects.h"
#include "operator/plan/pod_plan.h"
#include "operator/render/offline_fleet.h"

namespace flamefleet::render {

struct PlannedPod {
  const OfflinePod* pod = nullptr;
  std::vector<std::string>
      pools;  // that may run the agent of its node; which one is not known here
  plan::PodPlan plan;
  std::optional<plan::Problem> nothing;  // why nothing at all is collected
  std::string assumption;                // on which the plan depends; empty: none
};

// Processes of the nodes of a pool with scope Node.
struct PlannedHost {
  std::string pool;
  std::string backend;
  std::optional<plan::Problem> nothing;  // why they are not profiled

  friend bool operator==(const PlannedHost&, const PlannedHost&) = default;
};

struct OfflinePlan {
  std::vector<nlohmann::json> objects;  // that the operator would make
  std::vector<PlannedPod> pods;         // a pod is here once per set of pools that agree on it
  std::vector<PlannedHost> hosts;
  std::vector<const api::ProfilingTarget*> without_pods;  // targets that select none of the pods
  size_t considered = 0;                                  // pods, each once
  size_t profiled = 0;  // those of them of which something is collected
};

// `fleet` outlives the result.
OfflinePlan PlanOffline(const OfflineFleet& fleet, const plan::ObjectSettings& settings);

}  // namespace flamefleet::render
