// SPDX-License-Identifier: Apache-2.0
// PlanPod: from one pod, the ProfilingTargets that match it and its annotations to what is
// collected of it, and why not what is not. The rules, in the order in which they win:
//   1. pyroscope.io/scrape: "false" is the owner's veto; nothing is collected.
//   2. A paused target stops everything of the pod.
//   3. A field that a ProfilingTarget sets wins over annotations; the older target wins over the
//   younger.
//   4. pyroscope.io/* wins over profiles.grafana.com/*.
//   5. CPU with a port is pulled, without one it is sampled by eBPF; an explicit mode decides
//   either way.
//   6. With scope AllPods or Node, CPU that nobody asks for is sampled by eBPF, unless an
//   annotation of either family says no to it.
// A type is collected in one way per pod: cpu is never pulled and sampled at once.
//
// Thread: any; pure. Errors: none; what cannot be done is a Refusal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/agent_pool.h"
#include "operator/api/pod.h"
#include "operator/api/profiling_target.h"
#include "operator/plan/annotations.h"
#include "operator/plan/backend_table.h"
#include "operator/plan/fleet.h"

namespace flamefleet::plan {

// Who asks for a profile.
struct Askers {
  std::vector<std::string> targets;  // names of ProfilingTargets in the pod's namespace
  bool annotations = false;
  bool pool = false;  // the scope of the node's AgentPool

  void Add(const Askers& other);
  friend bool operator==(const Askers&, const Askers&) = default;
};

struct PullSettings {
  int32_t port = 0;
  std::optional<api::PullTls> tls;  // absent: plain HTTP
  std::string path;
  StringMap parameters;
  int64_t interval_ns = 0;
  int64_t timeout_ns = 0;

  friend bool operator==(const PullSettings&, const PullSettings&) = default;
};

// One profile that is collected: of a container by eBPF, or of the pod by pulling.
struct Collection {
  ProfileType type = ProfileType::kCpu;
  std::string container;             // with eBPF always set
  std::optional<PullSettings> pull;  // absent: eBPF
  bool thread_labels = false;        // with eBPF
  std::string backend;
  StringMap labels;
  Askers askers;

  friend bool operator==(const Collection&, const Collection&) = default;
};

// A profile that somebody asked for and that is not collected.
struct Refusal {
  ProfileType type = ProfileType::kCpu;
  Problem problem;
  Askers askers;

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

struct PodPlan {
  bool vetoed = false;     // by its owner's annotation
  std::string paused_by;   // name of a paused target; empty: none
  bool annotated = false;  // its annotations opt it in
  bool pooled = false;     // the scope of the node's AgentPool does
  // Annotations ask, but the pool does not let their family opt in, and nobody else asks.
  std::optional<Problem> not_enabled;
  std::vector<Collection> collections;  // by type, then in the order of the containers
  std::vector<Refusal> refusals;
  std::vector<Problem> warnings;  // look wrong, change nothing

  friend bool operator==(const PodPlan&, const PodPlan&) = default;
};

struct PodInput {
  const api::Pod& pod;
  std::vector<const api::ProfilingTarget*> targets;  // those that match, in any order
  api::AnnotationFamilies families;                  // that may opt in on the pod's node
  const BackendTable& backends;
  bool all_pods = false;  // the pool of the node profiles every pod of this namespace
};

// True when `target` asks for profiles of `pod`: same namespace, the selector matches.
bool Matches(const api::ProfilingTarget& target, const api::Pod& pod);

// True for a pod that is counted: it runs, or it will.
bool IsLive(const api::Pod& pod);

PodPlan PlanPod(const PodInput& input);

}  // namespace flamefleet::plan
