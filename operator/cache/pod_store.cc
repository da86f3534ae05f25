// SPDX-License-Identifier: Apache-2.0
#include "operator/cache/pod_store.h"

#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

// Nobody reads the version of a pod, and without it an update that changes nothing we read is no
// change.
Result<api::Pod> DecodePruned(const nlohmann::json& object) {
  Result<api::Pod> pod = api::DecodePod(object);
  if (pod.ok()) pod->meta.resource_version.clear();
  return pod;
}

}  // namespace

PodStore::PodStore(Mutex& mutex, GaugeMetric count) : Store(mutex, DecodePruned, count) {}

std::vector<PodStore::Pointer> PodStore::ListNode(const std::string& node) const {
  MutexLock lock(&mutex_);
  std::vector<Pointer> pods;
  if (const auto found = by_node_.find(node); found != by_node_.end()) {
    for (const auto& [key, pod] : found->second)
      pods.push_back(pod);
  }
  return pods;
}

std::vector<std::string> PodStore::Nodes() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> nodes;
  for (const auto& [node, pods] : by_node_)
    nodes.push_back(node);
  return nodes;
}

void PodStore::Reindex(const Pointer& before, const Pointer& after) {
  if (before && !before->node.empty()) {
    const auto node = by_node_.find(before->node);
    node->second.erase({before->meta.ns, before->meta.name});
    if (node->second.empty()) by_node_.erase(node);
  }
  if (after && !after->node.empty()) {
    by_node_[after->node][{after->meta.ns, after->meta.name}] = after;
  }
}

}  // namespace flamefleet
