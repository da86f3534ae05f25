// SPDX-License-Identifier: Apache-2.0
// PodStore: the pods of the cluster, pruned, with an index by node.
//
// Thread, Bounds, Errors: see Store.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/api/pod.h"
#include "operator/cache/store.h"

namespace flamefleet {

class PodStore final : public Store<api::Pod> {
 public:
  PodStore(Mutex& mutex, GaugeMetric count);

  // The pods scheduled to the node, by namespace and name.
  std::vector<Pointer> ListNode(const std::string& node) const;
  // Nodes that have a pod.
  std::vector<std::string> Nodes() const;

 private:
  void Reindex(const Pointer& before, const Pointer& after) override FF_REQUIRES(mutex_);

  std::map<std::string, std::map<ObjectKey, Pointer>> by_node_ FF_GUARDED_BY(mutex_);
};

}  // namespace flamefleet
