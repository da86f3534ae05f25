// SPDX-License-Identifier: Apache-2.0
// DebugState: what the operator knows and is about to do, for a person in front of a problem:
// GET /debug/state of --debug-listen, which is on loopback only (kubectl port-forward reaches it).
//
// Thread: any. Bounds: at most kMaxDebugItems of each list, with the number of those left out.
// No annotation, label or credential of anybody is in it.
#pragma once

#include <string>

#include "base/status.h"
#include "operator/cache/cluster_cache.h"
#include "operator/runtime/leader_elector.h"
#include "operator/runtime/work_queue.h"

namespace flamefleet {

namespace control {
class ControlServer;
}

inline constexpr size_t kMaxDebugItems = 200;

// JSON. `agents` is nullptr while this process does not lead.
std::string DebugState(const ClusterCache& cache, const WorkQueue& queue,
                       const LeaderElector& elector, const control::ControlServer* agents);

// kInvalidArgument unless `address` (host:port) is one of this host alone.
Status CheckLoopback(const std::string& address);

}  // namespace flamefleet
