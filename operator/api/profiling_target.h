// SPDX-License-Identifier: Apache-2.0
// ProfilingTarget: which pods of a namespace are profiled, and how. Field by field as in
// crds/profilingtargets.yaml.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/profile_type.h"
#include "base/status.h"
#include "operator/api/kinds.h"
#include "operator/api/label_selector.h"

namespace flamefleet::api {

enum class CollectMode { kAuto, kEbpf, kPull };

// A port by number or by the name that a container declares.
struct PortRef {
  int32_t number = 0;  // 0: by name
  std::string name;

  friend bool operator==(const PortRef&, const PortRef&) = default;
};

enum class PullScheme { kHttp, kHttps };

// Whom to trust at the other end of HTTPS.
struct PullTls {
  bool insecure_skip_verify = false;
  std::string ca_pem;       // trusted roots; empty: the system's
  std::string server_name;  // that the certificate is for; empty: the pod's address

  friend bool operator==(const PullTls&, const PullTls&) = default;
};

struct PullSpec {
  std::optional<PortRef> port;
  std::optional<PullScheme> scheme;
  PullTls tls;  // with HTTPS
  std::optional<std::string> path;
  StringMap parameters;  // of the query
  std::optional<int64_t> interval_ns;
  std::optional<int64_t> timeout_ns;

  friend bool operator==(const PullSpec&, const PullSpec&) = default;
};

struct ProfileSpec {
  ProfileType type = ProfileType::kCpu;
  CollectMode mode = CollectMode::kAuto;
  PullSpec pull;
  bool thread_labels = false;  // with eBPF

  friend bool operator==(const ProfileSpec&, const ProfileSpec&) = default;
};

struct ProfilingTargetSpec {
  LabelSelector selector;
  std::vector<std::string> containers;  // empty: all but init containers
  std::string service_name;             // empty: derived from the pod
  StringMap labels;
  std::vector<std::string> pod_labels;
  std::string backend;  // empty: the default one
  bool paused = false;
  std::vector<ProfileSpec> profiles;

  friend bool operator==(const ProfilingTargetSpec&, const ProfilingTargetSpec&) = default;
};

struct ProfilingTargetStatus {
  struct Nodes {
    int64_t matched = 0;
    int64_t profiling = 0;
    friend bool operator==(const Nodes&, const Nodes&) = default;
  };
  // How complete the call stacks of CPU samples by eBPF are.
  struct Stacks {
    int64_t whole_percent = 0;  // rounded down
    std::string cut_by;         // the most frequent reason of the others; empty: there are none
    friend bool operator==(const Stacks&, const Stacks&) = default;
  };
  int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  PodCounts pods;
  Nodes nodes;
  std::optional<Stacks> stacks;  // absent until there are enough to tell
  int64_t last_profile_ns = 0;   // wall clock, whole seconds; moves in steps of minutes; 0: never
  std::vector<FailingPod> failing_pods;  // at most 10, oldest first
  std::vector<PodWarning> warnings;      // at most 10, by pod

  friend bool operator==(const ProfilingTargetStatus&, const ProfilingTargetStatus&) = default;
};

struct ProfilingTarget {
  ObjectMeta meta;
  ProfilingTargetSpec spec;
  ProfilingTargetStatus status;

  friend bool operator==(const ProfilingTarget&, const ProfilingTarget&) = default;
};

// Unknown fields are ignored; a wrong type or enum value is kInvalidArgument with the field's path.
Result<ProfilingTarget> DecodeProfilingTarget(const nlohmann::json& object);
// The value of the object's "status" field.
nlohmann::json EncodeStatus(const ProfilingTargetStatus& status);

}  // namespace flamefleet::api
