// SPDX-License-Identifier: Apache-2.0
#include "operator/triggers.h"

#include <algorithm>
#include <set>
#include <utility>

#include "operator/plan/backend_secrets.h"
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
  cache.secrets.Listen([this] { OnBackends(); });
  const auto owned = [this](const OwnedWorkload* before, const OwnedWorkload* after) {
    OnOwned(after != nullptr ? *after : *before);
  };
  cache.daemon_sets.Listen(owned);
  cache.deployments.Listen(owned);
  cache.stateful_sets.Listen(owned);
  cache.services.Listen(owned);
  cache.namespaces.Listen([this](const auto* before, const auto* after) {
    if (before != nullptr && after != nullptr && before->labels == after->labels) return;
    OnNamespace((after != nullptr ? after : before)->meta.name);
  });
  cache.agent_pods.Listen([this](const api::AgentPod* before, const api::AgentPod* after) {
    queue_.Add(PoolKey((after != nullptr ? after : before)->pool), kCountDelay);
  });
  cache.refused_pods.Listen([this](const api::ObjectEvent* before, const api::ObjectEvent* after) {
    OnRefusedPods(*(after != nullptr ? after : before));
  });
}

void Triggers::OnPod(const api::Pod& pod) {
  if (!pod.node.empty()) queue_.Add(NodeKey(pod.node), kNodeDelay);
  for (const auto& target : cache_.targets.ListNamespace(pod.meta.ns)) {
    if (plan::Matches(*target, pod)) queue_.Add(TargetKey(target->meta), kCountDelay);
  }
  // An agent may be. The others come to their node's pool when they change what the node comes to.
  if (pod.meta.ns == ns_) AllPools(kCountDelay);
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
  cache_.secrets.Watch(plan::SecretNames(cache_.backends.List()));
  OnBackends();
}

void Triggers::OnBackends() {
  AllNodes();
  AllPools(kObjectDelay);  // their agents are told of all backends
  AllTargets(kCountDelay);
  AllBackends(kCountDelay);  // another one may be the default now
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

void Triggers::OnNamespace(const std::string& ns) {
  const auto selects = [](const auto& pool) { return !pool->spec.opt_in.namespaces.empty(); };
  if (std::ranges::none_of(cache_.pools.List(), selects)) return;
  for (const auto& pod : cache_.pods.ListNamespace(ns)) {
    if (!pod->node.empty()) queue_.Add(NodeKey(pod->node), kNodeDelay);
  }
  AllPools(kCountDelay);
}

void Triggers::OnRefusedPods(const api::ObjectEvent& event) {
  const auto daemon_set = cache_.daemon_sets.Get({event.meta.ns, event.object});
  if (daemon_set != nullptr) OnOwned(*daemon_set);
}

std::optional<std::set<std::string>> ChangedPods(const plan::NodeReport* before,
                                                 const plan::NodeReport& after) {
  if (before == nullptr || before->pool != after.pool || before->connected != after.connected ||
      before->received != after.received || before->sampling != after.sampling ||
      before->problems != after.problems) {
    return std::nullopt;
  }
  std::set<std::string> changed;
  // Both are ordered by the same ids.
  auto old = before->collections.begin();
  auto now = after.collections.begin();
  while (old != before->collections.end() || now != after.collections.end()) {
    const bool gone = now == after.collections.end() ||
                      (old != before->collections.end() && old->first < now->first);
    const bool added = !gone && (old == before->collections.end() || now->first < old->first);
    if (gone) {
      changed.insert((old++)->first.pod_uid);
    } else if (added) {
      changed.insert((now++)->first.pod_uid);
    } else {
      plan::CollectionHealth health = old->second;
      health.last_delivered_ns = now->second.last_delivered_ns;
      health.stacks = now->second.stacks;
      // Never delivered and delivered once are different things.
      const bool first = old->second.last_delivered_ns == 0 && health.last_delivered_ns != 0;
      if (first || health != now->second) changed.insert(now->first.pod_uid);
      ++old;
      ++now;
    }
  }
  return changed;
}

std::shared_ptr<const plan::NodeReport> Triggers::Exchange(
    const std::string& node, std::shared_ptr<const plan::NodeReport> report) {
  MutexLock lock(&mutex_);
  const auto [found, added] = reports_.try_emplace(node);
  std::swap(found->second, report);
  if (added) {
    std::erase_if(reports_, [&](const auto& entry) {
      return entry.first != node && cache_.pods.ListNode(entry.first).empty();
    });
  }
  return report;
}

void Triggers::OnReport(const std::string& node, std::shared_ptr<const plan::NodeReport> report) {
  if (report == nullptr) return;
  const plan::NodeReport& after = *report;
  const auto before = Exchange(node, report);
  const auto changed = ChangedPods(before.get(), after);
  const auto has_changed = [&](const api::Pod& pod) {
    return !changed || changed->contains(pod.meta.uid);
  };
  for (const auto& pod : cache_.pods.ListNode(node)) {
    for (const auto& target : cache_.targets.ListNamespace(pod->meta.ns)) {
      if (!plan::Matches(*target, *pod)) continue;
      queue_.Add(TargetKey(target->meta),
                 has_changed(*pod) ? kCountDelay : std::chrono::nanoseconds(kTimeDelay));
    }
  }
  const std::chrono::nanoseconds delay =
      !changed || !changed->empty() ? std::chrono::nanoseconds(kCountDelay) : kTimeDelay;
  queue_.Add(PoolKey(after.pool), delay);
  if (before != nullptr && before->pool != after.pool) queue_.Add(PoolKey(before->pool), delay);
  AllBackends(delay);
}

void Triggers::All() {
  AllNodes();
  AllPools(kCountDelay);
  AllBackends(kCountDelay);
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

void Triggers::AllBackends(std::chrono::nanoseconds delay) {
  for (const auto& backend : cache_.backends.List()) {
    queue_.Add(BackendKey(backend->meta.name), delay);
  }
}

}  // namespace flamefleet
