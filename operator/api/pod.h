// SPDX-License-Identifier: Apache-2.0
// Pod: the few fields of a pod that decide whether and how it is profiled. The rest is never kept:
// a cluster has 100,000 of them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "operator/api/kinds.h"

namespace flamefleet::api {

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

enum class ContainerKind {
  kMain,
  kInit,     // runs to its end before the pod starts: never profiled
  kSidecar,  // an init container with restartPolicy Always: runs as long as the pod
};

struct ContainerPort {
  std::string name;  // may be empty
  int32_t number = 0;

  friend bool operator==(const ContainerPort&, const ContainerPort&) = default;
};

struct Container {
  std::string name;
  ContainerKind kind = ContainerKind::kMain;
  std::string id;  // without the runtime's prefix ("containerd://"); empty until it was started
  bool running = false;
  std::vector<ContainerPort> ports;

  friend bool operator==(const Container&, const Container&) = default;
};

struct Pod {
  ObjectMeta meta;
  std::string node;    // empty until it is scheduled
  std::string ip;      // status.podIP; empty until there is one
  bool ready = false;  // its Ready condition is True
  PodPhase phase = PodPhase::kUnknown;
  // The workload: the controlling owner, or the Deployment behind a ReplicaSet. Empty for a bare
  // pod.
  std::string workload_kind;
  std::string workload_name;
  StringMap labels;
  StringMap annotations;  // only the keys that IsProfilingAnnotation accepts
  std::vector<Container> containers;

  friend bool operator==(const Pod&, const Pod&) = default;
};

inline constexpr std::string_view kPyroscopePrefix = "pyroscope.io/";
inline constexpr std::string_view kGrafanaPrefix = "profiles.grafana.com/";
inline constexpr std::string_view kOtelServiceName = "resource.opentelemetry.io/service.name";

// A key of one of the two annotation families, or OpenTelemetry's service name.
bool IsProfilingAnnotation(std::string_view key);

// A v1 Pod as the API server sends it. Fields that are not read are ignored; a field of the wrong
// type is kInvalidArgument and the message has its path ("spec.containers[1].name: want string").
Result<Pod> DecodePod(const nlohmann::json& object);
// The same of its protobuf message.
Result<Pod> DecodePodMessage(std::string_view message);

}  // namespace flamefleet::api
