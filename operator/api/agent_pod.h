// SPDX-License-Identifier: Apache-2.0
// AgentPod: how a pod of a pool's DaemonSet is doing and, when it does not run, why. Read beside
// Pod, which is kept of every pod of the cluster and so has none of this.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "base/status.h"
#include "operator/api/kinds.h"

namespace flamefleet::api {

struct AgentPod {
  ObjectMeta meta;   // without the version, which nobody reads
  std::string pool;  // name of its AgentPool
  std::string node;  // where it runs, or where it is to run
  // Why its container does not run, in the words of Kubernetes: "Unschedulable",
  // "ImagePullBackOff", "CrashLoopBackOff", ... Empty while nothing is wrong.
  std::string reason;
  std::string message;  // the details; may be empty

  friend bool operator==(const AgentPod&, const AgentPod&) = default;
};

// A v1 Pod with the label of a pool. Errors as DecodePod.
Result<AgentPod> DecodeAgentPod(const nlohmann::json& object);

}  // namespace flamefleet::api
