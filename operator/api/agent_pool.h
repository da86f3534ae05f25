// SPDX-License-Identifier: Apache-2.0
// AgentPool: one DaemonSet of agents. Field by field as in crds/agentpools.yaml.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "operator/api/kinds.h"
#include "operator/api/label_selector.h"
#include "operator/api/profiling_backend.h"

namespace flamefleet::api {

struct Toleration {
  std::string key;
  std::string op;  // "Exists" or "Equal"; empty is Equal
  std::string value;
  std::string effect;
  std::optional<int64_t> seconds;

  friend bool operator==(const Toleration&, const Toleration&) = default;
};

// Which annotation families opt a pod in.
struct AnnotationFamilies {
  bool pyroscope = false;
  bool grafana = false;

  friend bool operator==(const AnnotationFamilies&, const AnnotationFamilies&) = default;
};

// How pods may be profiled without a ProfilingTarget.
struct OptIn {
  AnnotationFamilies families{.pyroscope = true, .grafana = true};
  LabelSelector namespaces;  // only pods of these

  friend bool operator==(const OptIn&, const OptIn&) = default;
};

enum class PoolScope {
  kOptIn,    // what targets and annotations ask for
  kAllPods,  // and CPU of every other pod
  kNode,     // and CPU of the node's processes that are in no container
};

struct AgentPoolSpec {
  StringMap node_selector;
  // affinity.nodeAffinity as JSON text, since it is only handed on; empty: none.
  std::string node_affinity;
  std::vector<Toleration> tolerations;
  PoolScope scope = PoolScope::kOptIn;
  OptIn opt_in;
  int32_t sampling_frequency_hz = 19;
  int32_t stack_depth = 127;
  bool inlines = true;  // symbols.inlines
  std::vector<std::string> debuginfod_urls;
  int64_t cpu_budget_millicores = 0;  // 0: none
  Resources resources;
  std::string spool_size = "1Gi";  // on the node's disk
  std::string image;               // empty: the one the operator was started with
  std::string image_pull_policy;   // empty: Kubernetes' default
  std::vector<std::string> image_pull_secrets;
  std::string priority_class;           // empty: the cluster's default
  std::string max_unavailable = "10%";  // a percentage or a number
  StringMap pod_labels;
  StringMap pod_annotations;

  bool ProfilesAllPods() const { return scope != PoolScope::kOptIn; }
  bool ProfilesHost() const { return scope == PoolScope::kNode; }
  friend bool operator==(const AgentPoolSpec&, const AgentPoolSpec&) = default;
};

struct ProblemNode {
  std::string name;
  std::string reason;  // one of base/reasons.h, or a preflight's name
  std::string message;

  friend bool operator==(const ProblemNode&, const ProblemNode&) = default;
};

struct AgentPoolStatus {
  struct Nodes {
    int64_t desired = 0;    // nodes that should run an agent
    int64_t ready = 0;      // agents whose readiness probe passes
    int64_t profiling = 0;  // agents connected and sampling
    int64_t degraded = 0;   // with a problem, listed below or not
    friend bool operator==(const Nodes&, const Nodes&) = default;
  };
  int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  Nodes nodes;
  PodCounts annotated_pods;                // without a target, on this pool's nodes
  std::vector<FailingPod> failing_pods;    // of such pods; at most 10, oldest first
  std::vector<PodWarning> warnings;        // of pods on this pool's nodes; at most 10, by pod
  std::vector<ProblemNode> problem_nodes;  // at most 20, by name

  friend bool operator==(const AgentPoolStatus&, const AgentPoolStatus&) = default;
};

struct AgentPool {
  ObjectMeta meta;
  AgentPoolSpec spec;
  AgentPoolStatus status;

  friend bool operator==(const AgentPool&, const AgentPool&) = default;
};

// As DecodeProfilingTarget.
Result<AgentPool> DecodeAgentPool(const nlohmann::json& object);
nlohmann::json EncodeStatus(const AgentPoolStatus& status);

}  // namespace flamefleet::api
