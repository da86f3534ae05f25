// SPDX-License-Identifier: Apache-2.0
#include "operator/render/offline_plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/reasons.h"
#include "operator/api/well_known.h"

namespace flamefleet::render {
namespace {

template <typename T>
std::vector<const T*> Pointers(const std::vector<T>& objects) {
  std::vector<const T*> pointers;
  pointers.reserve(objects.size());
  for (const T& object : objects)
    pointers.push_back(&object);
  return pointers;
}

// Whether a node can have the labels that both select.
bool MayMeet(const api::StringMap& a, const api::StringMap& b) {
  return std::ranges::none_of(a, [&](const auto& label) {
    const auto other = b.find(label.first);
    return other != b.end() && other->second != label.second;
  });
}

// Nothing but the name of a namespace decides.
bool SelectsByName(const api::LabelSelector& selector) {
  const auto is_name = [](const std::string& key) { return key == api::kNamespaceNameLabel; };
  return std::ranges::all_of(selector.match_labels, is_name, &api::StringMap::value_type::first) &&
         std::ranges::all_of(selector.match_expressions, is_name, &api::LabelRequirement::key);
}

std::optional<plan::Problem> WhyNothing(const PlannedPod& planned) {
  const plan::PodPlan& plan = planned.plan;
  if (!plan::IsLive(planned.pod->pod))
    return plan::Problem{reasons::kPodNotRunning, "the pod has ended"};
  if (plan.vetoed) return plan::Problem{reasons::kOptedOut, "pyroscope.io/scrape is \"false\""};
  if (!plan.paused_by.empty())
    return plan::Problem{reasons::kPaused, "ProfilingTarget \"" + plan.paused_by + "\" is paused"};
  if (plan.not_enabled) return plan.not_enabled;
  if (plan.collections.empty() && plan.refusals.empty())
    return plan::Problem{
        reasons::kNotRequested,
        "no ProfilingTarget selects the pod and none of its annotations opts it in"};
  if (planned.pools.empty())
    return plan::Problem{reasons::kNoAgentPool,
                         "no AgentPool of the manifests can cover a node of the pod"};
  return std::nullopt;
}

class Planner {
 public:
  Planner(const OfflineFleet& fleet, const plan::ObjectSettings& settings)
      : fleet_(fleet), settings_(settings), backends_(Pointers(fleet.backends), settings.ns) {}

  OfflinePlan Run() {
    for (const api::AgentPool& pool : fleet_.pools)
      PlanPool(pool);
    for (const api::ProfilingBackend& backend : fleet_.backends) {
      if (!backend.spec.managed_store) continue;
      plan_.objects.push_back(plan::StoreWorkload(backend, settings_));
      plan_.objects.push_back(plan::StoreService(backend, settings_));
    }
    for (const OfflinePod& pod : fleet_.pods)
      PlanPod(pod);
    for (const api::ProfilingTarget& target : fleet_.targets) {
      const auto selected = [&](const OfflinePod& pod) { return plan::Matches(target, pod.pod); };
      if (std::ranges::none_of(fleet_.pods, selected)) plan_.without_pods.push_back(&target);
    }
    return std::move(plan_);
  }

 private:
  void PlanPool(const api::AgentPool& pool) {
    plan_.objects.push_back(plan::AgentDaemonSet(pool, settings_));
    if (!pool.spec.ProfilesHost()) return;
    plan_.hosts.push_back({.pool = pool.meta.name,
                           .backend = backends_.default_name(),
                           .nothing = backends_.WhyUnusable("")});
  }

  void PlanPod(const OfflinePod& pod) {
    std::vector<const api::ProfilingTarget*> targets;
    for (const api::ProfilingTarget& target : fleet_.targets) {
      if (plan::Matches(target, pod.pod)) targets.push_back(&target);
    }
    std::vector<PlannedPod> plans;
    for (const api::AgentPool& pool : fleet_.pools) {
      if (MayMeet(pool.spec.node_selector, pod.node_selector))
        AddPlan(PlanFor(pod, targets, pool.spec, {pool.meta.name}), plans);
    }
    if (plans.empty()) plans.push_back(PlanFor(pod, targets, api::AgentPoolSpec(), {}));
    plan_.profiled += std::ranges::any_of(
        plans, [](const PlannedPod& planned) { return !planned.plan.collections.empty(); });
    ++plan_.considered;
    std::ranges::move(plans, std::back_inserter(plan_.pods));
  }

  PlannedPod PlanFor(const OfflinePod& pod, const std::vector<const api::ProfilingTarget*>& targets,
                     const api::AgentPoolSpec& pool, const std::vector<std::string>& pools) const {
    const auto plan_when = [&](bool may_opt_in) {
      PlannedPod planned{.pod = &pod, .pools = pools};
      planned.plan = plan::PlanPod({pod.pod, targets,
                                    may_opt_in ? pool.opt_in.families : api::AnnotationFamilies(),
                                    backends_, may_opt_in && pool.ProfilesAllPods()});
      planned.nothing = WhyNothing(planned);
      if (planned.nothing) planned.plan.collections.clear();
      for (plan::Collection& collection : planned.plan.collections)
        DropUnknownLabels(pod, collection.labels);
      return planned;
    };
    const std::string& ns = pod.pod.meta.ns;
    if (const auto selected = IsSelected(pool.opt_in.namespaces, ns)) return plan_when(*selected);
    PlannedPod planned = plan_when(true);
    if (!IsToldAlike(planned, plan_when(false))) {
      planned.assumption = "namespace " + ns +
                           " has labels that optIn.namespaceSelector selects; a manifest of the "
                           "Namespace would say so";
    }
    return planned;
  }

  static bool IsToldAlike(const PlannedPod& a, const PlannedPod& b) {
    return a.plan.collections == b.plan.collections && a.plan.refusals == b.plan.refusals &&
           a.plan.warnings == b.plan.warnings && a.nothing == b.nothing;
  }

  // Whether pods of this namespace may opt in; nullopt: its labels are not known.
  std::optional<bool> IsSelected(const api::LabelSelector& selector, const std::string& ns) const {
    const auto found = fleet_.namespaces.find(ns);
    if (found == fleet_.namespaces.end() && !SelectsByName(selector)) return std::nullopt;
    api::StringMap labels;
    if (found != fleet_.namespaces.end()) labels = found->second;
    labels[api::kNamespaceNameLabel] = ns;
    return selector.Matches(labels);
  }

  // Pools that plan a pod alike are told of together.
  static void AddPlan(PlannedPod planned, std::vector<PlannedPod>& plans) {
    const auto same = std::ranges::find_if(plans, [&](const PlannedPod& other) {
      return other.plan == planned.plan && other.nothing == planned.nothing &&
             other.assumption == planned.assumption;
    });
    if (same == plans.end()) return plans.push_back(std::move(planned));
    same->pools.push_back(planned.pools.front());
  }

  // What only the cluster knows.
  static void DropUnknownLabels(const OfflinePod& pod, api::StringMap& labels) {
    if (pod.from_template) labels.erase("pod");
    if (pod.pod.node.empty()) labels.erase("node");
  }

  const OfflineFleet& fleet_;
  const plan::ObjectSettings& settings_;
  const plan::BackendTable backends_;
  OfflinePlan plan_;
};

}  // namespace

OfflinePlan PlanOffline(const OfflineFleet& fleet, const plan::ObjectSettings& settings) {
  return Planner(fleet, settings).Run();
}

}  // namespace flamefleet::render
