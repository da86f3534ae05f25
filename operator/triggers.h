// SPDX-License-Identifier: Apache-2.0
// Triggers: which keys a change concerns. A key too many costs a reconcile that changes nothing; a
// key too few is a bug.
//
// Thread: any. Bounds: bursts are gathered for a moment per key, longer for those whose reconcile
// looks at many pods.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/mutex.h"
#include "operator/cache/cluster_cache.h"
#include "operator/plan/fleet.h"
#include "operator/runtime/work_queue.h"

namespace flamefleet {

class Triggers {
 public:
  // A node's assignment: a new pod goes through several changes within this time.
  static constexpr std::chrono::milliseconds kNodeDelay{100};
  // Our own objects: quick, a user waits for them.
  static constexpr std::chrono::milliseconds kObjectDelay{50};
  // Statuses that count pods or reports.
  static constexpr std::chrono::seconds kCountDelay{1};
  // The same, when nothing but the time of the last profile moved: agents report every 10 s.
  static constexpr std::chrono::minutes kTimeDelay{1};

  // References outlive this object. Begins to listen to the stores of the cache.
  Triggers(ClusterCache& cache, WorkQueue& queue, std::string ns);

  // The agent of a node came, went or reported: `report` is the newest. What it concerns is told
  // from the one before: the pool, and of the node's pods those whose health changed.
  void OnReport(const std::string& node, std::shared_ptr<const plan::NodeReport> report);
  // Everything there is, once the cache is filled.
  void All();

 private:
  void OnPod(const api::Pod& pod);
  void OnTarget(const api::ProfilingTarget* before, const api::ProfilingTarget* after);
  void OnBackend(const api::ProfilingBackend* before, const api::ProfilingBackend* after);
  // What agents are told of backends changed.
  void OnBackends();
  void OnPool(const api::AgentPool* before, const api::AgentPool* after);
  void OnNamespace(const std::string& ns);
  void OnRefusedPods(const api::ObjectEvent& event);
  void OnOwned(const OwnedWorkload& object);
  // The last report of the node, replaced by `report`.
  std::shared_ptr<const plan::NodeReport> Exchange(const std::string& node,
                                                   std::shared_ptr<const plan::NodeReport> report);
  void AllNodes();
  void AllTargets(std::chrono::nanoseconds delay);
  void AllPools(std::chrono::nanoseconds delay);
  void AllBackends(std::chrono::nanoseconds delay);

  ClusterCache& cache_;
  WorkQueue& queue_;
  const std::string ns_;
  Mutex mutex_;
  // By node; of nodes that have pods.
  std::map<std::string, std::shared_ptr<const plan::NodeReport>> reports_ FF_GUARDED_BY(mutex_);
};

// The pods whose health another report judges otherwise, by UID; nullopt: any of the node's. Only
// the times of profiles that were delivered do not count.
std::optional<std::set<std::string>> ChangedPods(const plan::NodeReport* before,
                                                 const plan::NodeReport& after);

}  // namespace flamefleet
