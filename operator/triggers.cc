// SPDX-License-Identifier: Apache-2.0
#include "operator/triggers.h"

#include <set>

#include "operator/plan/pod_plan.h"

namespace flamefleet {
namespace {

std::string NodeKey(const std::string& node) {
  return "node/" + node;
}
std::string PoolKey(const std::string& pool) {
  return "pool/" + pool;
}
std::string BackendKey(const std::string& backend) {
  return "backend/" + backend;
}
std::string TargetKey(const api::ObjectMeta& meta) {
  return "target/" + meta.ns + "/" + meta.name;
}

// True when anything but the status changed: what others depend on.
template <typename T>
bool SpecChanged(const T* before, const T* after) {
  return before == nullptr || after == nullptr || before->spec != after->spec ||
         before->meta.uid != after->meta.uid || before->meta.deleting != after->meta.deleting;
}

}  // namespace

Triggers::Triggers(ClusterCache& cache, WorkQueue& queue, std::string ns)
    : cache_(cache), queue_(queue), ns_(std::move(ns)) {
  cache.pods.Listen([this](const api::Pod* before, const api::Pod* after) {
    if (before != nullptr) OnPod(*before);
    if (after != nullptr) OnPod(*after);
  });
  cache.targets.Listen([this](const auto* before, const auto* after) { OnTarget(before, after); });
  cache.backends.Listen(
      [this](const auto* before, const auto* after) { OnBackend(before, after); });
  cache.pools.Listen([this](const auto* before, const auto* after) { OnPool(before, after); });
  const auto owned = [this](const OwnedWorkload* before, const OwnedWorkload* after) {
    OnOwned(after != nullptr ? *after : *before);
  };
  cache.daemon_sets.Listen(owned);
  cache.deployments.Listen(owned);
  cache.services.Listen(owned);
}

void Triggers::OnPod(const api::Pod& pod) {
  if (!pod.node.empty()) queue_.Add(NodeKey(pod.node), kNodeDelay);
  for (const auto& target : cache_.targets.ListNamespace(pod.meta.ns)) {
    if (plan::Matches(*target, pod)) queue_.Add(TargetKey(target->meta), kCountDelay);
  }
  if (!pod.annotations.empty() || pod.meta.ns == ns_) AllPools(kCountDelay);
}

void Triggers::OnTarget(const api::ProfilingTarget* before, const api::ProfilingTarget* after) {
  const api::ObjectMeta& meta = (after != nullptr ? after : before)->meta;
  queue_.Add(TargetKey(meta), kObjectDelay);
  if (!SpecChanged(before, after)) return;
  for (const auto& pod : cache_.pods.ListNamespace(meta.ns)) {
    const bool concerned = (before != nullptr && plan::Matches(*before, *pod)) ||
                           (after != nullptr && plan::Matches(*after, *pod));
    if (concerned && !pod->node.empty()) queue_.Add(NodeKey(pod->node), kNodeDelay);
  }
  // Other targets of the same pods: which is older decides who is served.
  for (const auto& other : cache_.targets.ListNamespace(meta.ns)) {
    queue_.Add(TargetKey(other->meta), kCountDelay);
  }
}

void Triggers::OnBackend(const api::ProfilingBackend* before, const api::ProfilingBackend* after) {
  queue_.Add(BackendKey((after != nullptr ? after : before)->meta.name), kObjectDelay);
  if (!SpecChanged(before, after)) return;
  AllNodes();
  AllPools(kObjectDelay);  // their agents are told of all backends
  AllTargets(kCountDelay);
  AllBackends();  // another one may be the default now
}

void Triggers::OnPool(const api::AgentPool* before, const api::AgentPool* after) {
  queue_.Add(PoolKey((after != nullptr ? after : before)->meta.name), kObjectDelay);
  if (!SpecChanged(before, after)) return;
  AllNodes();
  AllTargets(kCountDelay);
}

void Triggers::OnOwned(const OwnedWorkload& object) {
  const auto pool = object.labels.find(std::string(api::kPoolLabel));
  if (pool != object.labels.end()) queue_.Add(PoolKey(pool->second), kObjectDelay);
  const auto backend = object.labels.find(std::string(api::kBackendLabel));
  if (backend != object.labels.end()) queue_.Add(BackendKey(backend->second), kObjectDelay);
}

void Triggers::OnReport(const std::string& node) {
  std::set<std::string> namespaces;
  for (const auto& pod : cache_.pods.ListNode(node))
    namespaces.insert(pod->meta.ns);
  for (const std::string& ns : namespaces) {
    for (const auto& target : cache_.targets.ListNamespace(ns)) {
      queue_.Add(TargetKey(target->meta), kCountDelay);
    }
  }
  AllPools(kCountDelay);
  AllBackends();
}

void Triggers::All() {
  AllNodes();
  AllPools(kCountDelay);
  AllBackends();
  AllTargets(kObjectDelay);
}

void Triggers::AllNodes() {
  for (const std::string& node : cache_.pods.Nodes())
    queue_.Add(NodeKey(node), kNodeDelay);
}

void Triggers::AllTargets(std::chrono::nanoseconds delay) {
  for (const auto& target : cache_.targets.List())
    queue_.Add(TargetKey(target->meta), delay);
}

void Triggers::AllPools(std::chrono::nanoseconds delay) {
  for (const auto& pool : cache_.pools.List())
    queue_.Add(PoolKey(pool->meta.name), delay);
}

void Triggers::AllBackends() {
  for (const auto& backend : cache_.backends.List()) {
    queue_.Add(BackendKey(backend->meta.name), kCountDelay);
  }
}

}  // namespace flamefleet
