// SPDX-License-Identifier: Apache-2.0
// Triggers: which keys a change concerns. A key too many costs a reconcile that changes nothing; a
// key too few is a bug.
//
// Thread: any. Bounds: bursts are gathered for a moment per key, longer for those whose reconcile
// looks at many pods.
#pragma once

#include <chrono>
#include <string>

#include "operator/cache/cluster_cache.h"
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

  // References outlive this object. Begins to listen to the stores of the cache.
  Triggers(ClusterCache& cache, WorkQueue& queue, std::string ns);

  // The agent of a node came, went, or reported something else than before.
  void OnReport(const std::string& node);
  // Everything there is, once the cache is filled.
  void All();

 private:
  void OnPod(const api::Pod& pod);
  void OnTarget(const api::ProfilingTarget* before, const api::ProfilingTarget* after);
  void OnBackend(const api::ProfilingBackend* before, const api::ProfilingBackend* after);
  void OnPool(const api::AgentPool* before, const api::AgentPool* after);
  void OnOwned(const OwnedWorkload& object);
  void AllNodes();
  void AllTargets(std::chrono::nanoseconds delay);
  void AllPools(std::chrono::nanoseconds delay);
  void AllBackends();

  ClusterCache& cache_;
  WorkQueue& queue_;
  const std::string ns_;
};

}  // namespace flamefleet
