// SPDX-License-Identifier: Apache-2.0
// PodSums: what the pods of each node come to in the status of its pool, kept from one reconcile of
// the pool to the next: of 100,000 pods only those of a node where something changed are planned
// anew.
//
// What is planned for a pod changes only with what its node is reconciled for, so NodeController
// sets the sum each time; what the agent says of it comes with a report, which Find compares.
//
// Thread: one (the worker). Bounds: one entry per node that has pods. Errors: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "operator/plan/fleet.h"
#include "operator/plan/status.h"

namespace flamefleet {

class PodSums {
 public:
  struct Kept {
    const plan::NodePods& sum;  // until the next Set or Forget of the node
    bool changed = false;       // it was another one before, or that of another pool
  };
  // The sum as it was made with `report` (nullptr: none) for the node's pool (empty: none).
  Kept Set(const std::string& node, const std::string& pool, plan::NodePods sum,
           std::shared_ptr<const plan::NodeReport> report);
  // nullptr when there is none for this pool, or when it may be another one with `report`.
  const plan::NodePods* Find(const std::string& node, const std::string& pool,
                             const std::shared_ptr<const plan::NodeReport>& report);
  // Of a node without pods.
  void Forget(const std::string& node) { nodes_.erase(node); }

 private:
  struct Entry {
    std::string pool;
    plan::NodePods sum;
    std::shared_ptr<const plan::NodeReport> report;
  };
  std::map<std::string, Entry> nodes_;
};

}  // namespace flamefleet
