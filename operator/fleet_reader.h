// SPDX-License-Identifier: Apache-2.0
// FleetReader: gathers, for one reconcile, what the cache and the agents know into the views that
// operator/plan judges. What it has read once stays as it is for its life.
//
// Thread: one; its life is one reconcile. Bounds: what it was asked for.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/cache/cluster_cache.h"
#include "operator/plan/backend_table.h"
#include "operator/plan/fleet.h"
#include "operator/plan/pod_health.h"
#include "operator/plan/pod_plan.h"

namespace flamefleet {

namespace control {
class ControlServer;
}

class FleetReader {
 public:
  struct Node {
    std::string name;
    // The pool that the node belongs to: the oldest of those with an agent there; between two
    // agents, that of the last one. nullptr: none.
    Store<api::AgentPool>::Pointer pool;
    PodStore::Pointer agent_pod;                     // of that pool; may be nullptr
    std::shared_ptr<const plan::NodeReport> report;  // nullptr: its agent never connected
  };

  // References outlive this object. `ns` is the operator's namespace.
  FleetReader(const ClusterCache& cache, const control::ControlServer& agents,
              const std::string& ns);

  const plan::BackendTable& backends() const { return backends_; }
  const Node& NodeOf(const std::string& name);
  // The view of a pod with its plan; valid as long as this object, or until DropPlans.
  plan::PodView View(const PodStore::Pointer& pod);
  // The views of those that live.
  std::vector<plan::PodView> Views(const std::vector<PodStore::Pointer>& pods) {
    return Views(pods, [](const api::Pod&) { return true; });
  }
  // Of these, those that `wanted` accepts.
  template <typename Predicate>
  std::vector<plan::PodView> Views(const std::vector<PodStore::Pointer>& pods, Predicate wanted) {
    std::vector<plan::PodView> views;
    for (const PodStore::Pointer& pod : pods) {
      if (plan::IsLive(*pod) && wanted(*pod)) views.push_back(View(pod));
    }
    return views;
  }
  // Forgets the plans: views that were handed out end.
  void DropPlans() { planned_.clear(); }
  // Nodes with an agent pod of this pool, by name.
  std::vector<const Node*> NodesOfPool(const std::string& pool);

 private:
  struct PlannedPod {
    PodStore::Pointer pod;
    plan::PodPlan plan;
  };

  plan::PodPlan PlanOf(const api::Pod& pod);
  bool MayOptIn(const api::OptIn& opt_in, const std::string& ns) const;
  bool IsAgentPod(const api::Pod& pod) const;

  const ClusterCache& cache_;
  const control::ControlServer& agents_;
  const std::string& ns_;
  std::vector<Store<api::ProfilingBackend>::Pointer> backend_objects_;
  plan::BackendTable backends_;
  std::map<std::string, Node> nodes_;
  std::map<std::string, std::vector<Store<api::ProfilingTarget>::Pointer>>
      targets_;                     // by namespace
  std::deque<PlannedPod> planned_;  // addresses stay
};

}  // namespace flamefleet
