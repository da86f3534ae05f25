// SPDX-License-Identifier: Apache-2.0
// Workload: what the operator reads back of the DaemonSets, Deployments and StatefulSets that it
// made.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>

#include "base/status.h"
#include "operator/api/kinds.h"

namespace flamefleet::api {

struct Workload {
  ObjectMeta meta;
  StringMap labels;
  int64_t observed_generation = 0;
  int64_t desired = 0;  // pods that should run
  int64_t created = 0;  // DaemonSet: nodes that have one
  int64_t updated = 0;  // pods of the newest template
  int64_t ready = 0;    // DaemonSet: numberReady; else availableReplicas

  friend bool operator==(const Workload&, const Workload&) = default;
};

// An apps/v1 DaemonSet, or a Deployment or StatefulSet. Errors as DecodePod.
Result<Workload> DecodeDaemonSet(const nlohmann::json& object);
Result<Workload> DecodeReplicas(const nlohmann::json& object);

}  // namespace flamefleet::api
