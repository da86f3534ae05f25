// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/pod_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/reasons.h"
#include "operator/plan/overrides.h"
#include "operator/plan/resolve.h"
#include "operator/plan/series_labels.h"

namespace flamefleet::plan {
namespace {

std::string DefaultPath(ProfileType type, bool by_pyroscope) {
  switch (type) {
    case ProfileType::kCpu:
      return "/debug/pprof/profile";
    case ProfileType::kMemory:
      // The same samples; what served the older family may know only the older path.
      return by_pyroscope ? "/debug/pprof/heap" : "/debug/pprof/allocs";
    case ProfileType::kGoroutine:
      return "/debug/pprof/goroutine";
    case ProfileType::kMutex:
      return "/debug/pprof/mutex";
    case ProfileType::kBlock:
      return "/debug/pprof/block";
  }
  return "";
}

const api::ProfileSpec* FindProfile(const api::ProfilingTarget& target, ProfileType type) {
  const auto found = std::ranges::find(target.spec.profiles, type, &api::ProfileSpec::type);
  return found == target.spec.profiles.end() ? nullptr : &*found;
}

// The same thing collected in the same way, whoever asked.
bool SameCollection(const Collection& a, const Collection& b) {
  return a.container == b.container && a.pull == b.pull && a.backend == b.backend &&
         a.labels == b.labels && a.thread_labels == b.thread_labels;
}

class Planner {
 public:
  explicit Planner(const PodInput& input)
      : input_(input),
        pyroscope_(ReadPyroscopeAnnotations(input.pod.annotations)),
        grafana_(ReadGrafanaAnnotations(input.pod.annotations)),
        targets_(input.targets) {
    std::ranges::sort(targets_, {}, [](const api::ProfilingTarget* target) {
      return std::tie(target->meta.creation_ns, target->meta.name);
    });
  }

  PodPlan Run() {
    plan_.warnings = std::move(pyroscope_.warnings);
    std::ranges::move(grafana_.warnings, std::back_inserter(plan_.warnings));
    plan_.vetoed = pyroscope_.veto;
    if (plan_.vetoed) return std::move(plan_);
    for (const ProfileType type : kProfileTypes) {
      if (FindAnnotationRequest(type)) plan_.annotated = true;
    }
    for (const api::ProfilingTarget* target : targets_) {
      if (target->spec.paused && plan_.paused_by.empty()) plan_.paused_by = target->meta.name;
    }
    if (plan_.paused_by.empty()) {
      for (const ProfileType type : kProfileTypes)
        PlanType(type);
    }
    if (plan_.collections.empty() && plan_.refusals.empty()) plan_.not_enabled = NotEnabled();
    return std::move(plan_);
  }

 private:
  // What annotations ask for a type: a problem, or the families that ask, the stronger first.
  struct AnnotationRequest {
    std::optional<Problem> problem;
    std::vector<const AnnotatedProfile*> families;
  };

  std::optional<AnnotationRequest> FindAnnotationRequest(ProfileType type) const {
    AnnotationRequest request;
    const std::pair<bool, const FamilyAnnotations*> families[] = {
        {input_.families.pyroscope, &pyroscope_}, {input_.families.grafana, &grafana_}};
    for (const auto& [may_opt_in, family] : families) {
      const AnnotatedProfile& profile = family->For(type);
      if (!may_opt_in || !profile.wanted) continue;
      if (profile.wanted.problem) {
        request.problem = profile.wanted.problem;
        return request;
      }
      if (*profile.wanted.value) {
        request.families.push_back(&profile);
      } else if (request.families.empty()) {
        return std::nullopt;  // the stronger family says no
      }
    }
    if (request.families.empty()) return std::nullopt;
    return request;
  }

  // The families that ask in vain.
  std::optional<Problem> NotEnabled() const {
    std::string names;
    const std::tuple<bool, const FamilyAnnotations*, const char*> families[] = {
        {input_.families.pyroscope, &pyroscope_, "pyroscope.io"},
        {input_.families.grafana, &grafana_, "profiles.grafana.com"}};
    for (const auto& [may_opt_in, family, name] : families) {
      const bool asks = std::ranges::any_of(family->profiles, [](const AnnotatedProfile& profile) {
        return profile.wanted.value == true || profile.wanted.problem;
      });
      if (asks && !may_opt_in) names += (names.empty() ? "" : " and ") + std::string(name);
    }
    if (names.empty()) return std::nullopt;
    return Problem{reasons::kAnnotationsNotEnabled,
                   names +
                       " annotations ask for profiles, but spec.optIn of the AgentPool of the "
                       "node does not let them opt pods in"};
  }

  void Warn(std::vector<Problem> warnings) {
    std::ranges::move(warnings, std::back_inserter(plan_.warnings));
  }

  void PlanType(ProfileType type) {
    bool targeted = false;
    const OverrideInput said{type, input_.pod, pyroscope_.For(type), grafana_.For(type)};
    for (const api::ProfilingTarget* target : targets_) {
      const api::ProfileSpec* profile = FindProfile(*target, type);
      if (profile == nullptr) continue;
      if (!targeted) Warn(OverriddenByTarget(said, *target, *profile));
      auto resolved = Resolve({type,
                               target,
                               profile,
                               {&pyroscope_.For(type), &grafana_.For(type)},
                               DefaultPath(type, false)},
                              input_, SeriesLabels(input_.pod, target, pyroscope_, grafana_));
      if (const auto* collections = std::get_if<std::vector<Collection>>(&resolved))
        Warn(WithoutEffect(input_.pod, *target, *profile, *collections));
      Add(std::move(resolved), type, Askers{.targets = {target->meta.name}});
      targeted = true;
    }
    const std::optional<AnnotationRequest> request = FindAnnotationRequest(type);
    const bool both = input_.families.pyroscope && input_.families.grafana;
    if (both && !targeted) Warn(OverriddenByPyroscope(said));
    if (!request) {
      if (!targeted && type == ProfileType::kCpu && AllPodsWantsCpu()) AddForPool();
      return;
    }
    if (targeted) {
      MarkAnnotated(type);
    } else if (request->problem) {
      plan_.refusals.push_back({type, *request->problem, Askers{.annotations = true}});
    } else {
      const bool by_pyroscope = request->families.front() == &pyroscope_.For(type);
      Add(Resolve({type, nullptr, nullptr, request->families, DefaultPath(type, by_pyroscope)},
                  input_, SeriesLabels(input_.pod, nullptr, pyroscope_, grafana_)),
          type, Askers{.annotations = true});
    }
  }

  bool AllPodsWantsCpu() const {
    const auto refuses = [](const FamilyAnnotations& family) {
      const Said<bool>& wanted = family.For(ProfileType::kCpu).wanted;
      return wanted.value && !*wanted.value;
    };
    return input_.all_pods && !refuses(pyroscope_) && !refuses(grafana_);
  }

  // Nothing but the scope of the pool asks: by eBPF, whatever ports the pod declares.
  void AddForPool() {
    plan_.pooled = true;
    const api::ProfileSpec by_ebpf{.type = ProfileType::kCpu, .mode = api::CollectMode::kEbpf};
    Add(Resolve({ProfileType::kCpu, nullptr, &by_ebpf, {}, ""}, input_,
                SeriesLabels(input_.pod, nullptr, pyroscope_, grafana_)),
        ProfileType::kCpu, Askers{.pool = true});
  }

  // Takes what was resolved, unless an older target has the type in another way.
  void Add(std::variant<std::vector<Collection>, Problem> resolved, ProfileType type,
           const Askers& askers) {
    if (auto* problem = std::get_if<Problem>(&resolved)) {
      plan_.refusals.push_back({type, std::move(*problem), askers});
      return;
    }
    std::vector<Collection> added;
    for (Collection& collection : std::get<std::vector<Collection>>(resolved)) {
      Collection* rival = FindRival(collection);
      if (rival == nullptr) {
        collection.askers = askers;
        added.push_back(std::move(collection));
      } else if (SameCollection(*rival, collection)) {
        rival->askers.Add(askers);
      } else {
        const std::string older = rival->askers.targets.front();
        plan_.refusals.push_back(
            {type,
             {reasons::kConflictingTargets,
              "the older ProfilingTarget \"" + older + "\" collects it in another way"},
             askers});
        plan_.warnings.push_back(
            {reasons::kConflictingTargets,
             std::string(ProfileTypeName(type)) + ": ProfilingTarget \"" + askers.targets.front() +
                 "\" wants it in another way than \"" + older + "\", which is older and served"});
        return;
      }
    }
    std::ranges::move(added, std::back_inserter(plan_.collections));
  }

  // What cannot be collected beside `collection`.
  Collection* FindRival(const Collection& collection) {
    for (Collection& other : plan_.collections) {
      if (other.type != collection.type) continue;
      const bool both_ebpf = !other.pull && !collection.pull;
      if (!both_ebpf || other.container == collection.container) return &other;
    }
    return nullptr;
  }

  void MarkAnnotated(ProfileType type) {
    for (Collection& collection : plan_.collections) {
      if (collection.type == type) collection.askers.annotations = true;
    }
    for (Refusal& refusal : plan_.refusals) {
      if (refusal.type == type) refusal.askers.annotations = true;
    }
  }

  const PodInput& input_;
  FamilyAnnotations pyroscope_;
  FamilyAnnotations grafana_;
  std::vector<const api::ProfilingTarget*> targets_;  // the oldest first
  PodPlan plan_;
};

}  // namespace

void Askers::Add(const Askers& other) {
  targets.insert(targets.end(), other.targets.begin(), other.targets.end());
  annotations = annotations || other.annotations;
  pool = pool || other.pool;
}

bool Matches(const api::ProfilingTarget& target, const api::Pod& pod) {
  return !target.meta.deleting && target.meta.ns == pod.meta.ns &&
         target.spec.selector.Matches(pod.labels);
}

bool IsLive(const api::Pod& pod) {
  return !pod.meta.deleting && pod.phase != api::PodPhase::kSucceeded &&
         pod.phase != api::PodPhase::kFailed;
}

PodPlan PlanPod(const PodInput& input) {
  return Planner(input).Run();
}

}  // namespace flamefleet::plan
