// SPDX-License-Identifier: Apache-2.0
#include "operator/fleet_reader.h"

#include <set>

#include "operator/control/control_server.h"
#include "operator/plan/assignment.h"

namespace flamefleet {
namespace {

template <typename T>
std::vector<const T*> RawPointers(const std::vector<std::shared_ptr<const T>>& objects) {
  std::vector<const T*> raw;
  raw.reserve(objects.size());
  for (const auto& object : objects)
    raw.push_back(object.get());
  return raw;
}

std::string PoolLabelOf(const api::Pod& pod) {
  const auto label = pod.labels.find(std::string(api::kPoolLabel));
  return label == pod.labels.end() ? std::string() : label->second;
}

}  // namespace

FleetReader::FleetReader(const ClusterCache& cache, const control::ControlServer& agents,
                         const std::string& ns)
    : cache_(cache),
      agents_(agents),
      ns_(ns),
      backend_objects_(cache.backends.List()),
      backends_(RawPointers(backend_objects_), ns, cache.secrets.Known()) {}

bool FleetReader::IsAgentPod(const api::Pod& pod) const {
  return pod.meta.ns == ns_ && pod.workload_kind == "DaemonSet" && !PoolLabelOf(pod).empty() &&
         pod.phase != api::PodPhase::kSucceeded && pod.phase != api::PodPhase::kFailed;
}

const FleetReader::Node& FleetReader::NodeOf(const std::string& name) {
  const auto [found, added] = nodes_.try_emplace(name);
  Node& node = found->second;
  if (!added) return node;
  node.name = name;
  node.report = agents_.ReportOf(name);
  for (const PodStore::Pointer& pod : cache_.pods.ListNode(name, ns_)) {
    if (!IsAgentPod(*pod)) continue;
    auto pool = cache_.pools.Get({"", PoolLabelOf(*pod)});
    if (pool == nullptr || pool->meta.deleting) continue;
    const bool same = node.pool != nullptr && node.pool->meta.name == pool->meta.name;
    if (node.pool != nullptr && !same && !plan::IsOlder(*pool, *node.pool)) continue;
    if (same && pod->meta.deleting) continue;  // beside the one that replaces it
    node.pool = std::move(pool);
    node.agent_pod = pod;
  }
  if (node.pool == nullptr && node.report != nullptr) {
    node.pool = cache_.pools.Get({"", node.report->pool});
  }
  return node;
}

bool FleetReader::MayOptIn(const api::OptIn& opt_in, const std::string& ns) const {
  if (opt_in.namespaces.empty()) return true;
  const auto object = cache_.namespaces.Get({"", ns});
  return object != nullptr && opt_in.namespaces.Matches(object->labels);
}

plan::PodPlan FleetReader::PlanOf(const api::Pod& pod) {
  const auto [found, added] = targets_.try_emplace(pod.meta.ns);
  if (added) found->second = cache_.targets.ListNamespace(pod.meta.ns);
  std::vector<const api::ProfilingTarget*> targets;
  for (const auto& target : found->second) {
    if (plan::Matches(*target, pod)) targets.push_back(target.get());
  }
  const Node& node = NodeOf(pod.node);
  static const api::AgentPoolSpec kDefaults;
  const api::AgentPoolSpec& spec = node.pool ? node.pool->spec : kDefaults;
  const bool may_opt_in = MayOptIn(spec.opt_in, pod.meta.ns);
  return plan::PlanPod({pod, std::move(targets),
                        may_opt_in ? spec.opt_in.families : api::AnnotationFamilies(), backends_,
                        may_opt_in && spec.ProfilesAllPods()});
}

plan::PodView FleetReader::View(const PodStore::Pointer& pod) {
  const Node& node = NodeOf(pod->node);
  const PlannedPod& planned = planned_.emplace_back(PlannedPod{pod, PlanOf(*pod)});
  return {planned.pod.get(), &planned.plan, {node.agent_pod != nullptr, node.report.get()}};
}

std::vector<const FleetReader::Node*> FleetReader::NodesOfPool(const std::string& pool) {
  std::set<std::string> names;
  for (const PodStore::Pointer& pod : cache_.pods.ListNamespace(ns_)) {
    if (IsAgentPod(*pod) && PoolLabelOf(*pod) == pool && !pod->node.empty()) {
      names.insert(pod->node);
    }
  }
  std::vector<const Node*> nodes;
  for (const std::string& name : names)
    nodes.push_back(&NodeOf(name));
  return nodes;
}

}  // namespace flamefleet
