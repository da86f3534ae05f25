// SPDX-License-Identifier: Apache-2.0
// Names that the API server knows: our group, kinds, and the metadata that the operator reads of
// any object.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace flamefleet::api {

inline constexpr std::string_view kGroup = "flamefleet.dev";
inline constexpr std::string_view kVersion = "v1alpha1";
inline constexpr std::string_view kApiVersion = "flamefleet.dev/v1alpha1";

struct Kind {
  std::string_view name;    // "ProfilingTarget"
  std::string_view plural;  // "profilingtargets", as in URLs
  bool namespaced = false;
};
inline constexpr Kind kProfilingTargetKind{"ProfilingTarget", "profilingtargets", true};
inline constexpr Kind kProfilingBackendKind{"ProfilingBackend", "profilingbackends", false};
inline constexpr Kind kAgentPoolKind{"AgentPool", "agentpools", false};

// Labels we put on what the operator makes.
inline constexpr std::string_view kPoolLabel = "flamefleet.dev/pool";
inline constexpr std::string_view kBackendLabel = "flamefleet.dev/backend";

using StringMap = std::map<std::string, std::string>;

struct ObjectMeta {
  std::string ns;  // empty for cluster-scoped kinds
  std::string name;
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  int64_t creation_ns = 0;  // wall clock, whole seconds
  bool deleting = false;    // has a deletionTimestamp

  friend bool operator==(const ObjectMeta&, const ObjectMeta&) = default;
};

// metav1.Condition. last_transition_ns is wall clock in whole seconds: what the API server keeps.
struct Condition {
  std::string type;
  std::string status;  // "True", "False" or "Unknown"
  std::string reason;  // CamelCase, never empty
  std::string message;
  int64_t observed_generation = 0;
  int64_t last_transition_ns = 0;

  friend bool operator==(const Condition&, const Condition&) = default;
};

struct PodCounts {
  int64_t matched = 0;
  int64_t profiled = 0;  // every wanted profile of the pod was reported as delivered
  int64_t failing = 0;
  int64_t waiting = 0;  // none of these: collection begins
  int64_t idle = 0;     // collection works and there has been nothing to deliver yet

  friend bool operator==(const PodCounts&, const PodCounts&) = default;
};

struct FailingPod {
  std::string ns;  // only in the status of cluster-scoped kinds
  std::string name;
  std::string node;
  std::string profile;  // profile type; empty: all of the pod
  std::string reason;   // one of base/reasons.h
  std::string message;
  int64_t since_ns = 0;  // wall clock, whole seconds

  friend bool operator==(const FailingPod&, const FailingPod&) = default;
};

// Something about a pod that changes nothing but looks wrong.
struct PodWarning {
  std::string ns;  // only in the status of cluster-scoped kinds
  std::string name;
  std::string reason;  // one of base/reasons.h
  std::string message;

  friend bool operator==(const PodWarning&, const PodWarning&) = default;
};

}  // namespace flamefleet::api
