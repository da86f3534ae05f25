// SPDX-License-Identifier: Apache-2.0
// TallyNodes: what is wrong on the nodes of a pool, said by their agents, or by their pods when
// there is no agent to say anything.
//
// Thread: any; pure. Bounds: as status.h.
#pragma once

#include <cstdint>
#include <vector>

#include "operator/plan/status.h"

namespace flamefleet::plan {

struct NodeTally {
  int64_t profiling = 0;
  int64_t conflicts = 0;                   // nodes of older pools
  std::string conflict;                    // which ones, in words
  int64_t degraded = 0;                    // nodes with a problem
  bool unknown = false;                    // an agent has not been heard yet
  std::vector<api::ProblemNode> problems;  // by name, at most kMaxProblemNodes
  std::string limited;                     // what agents that sample cannot do, in words
  std::string limited_reason;              // of all that is in `limited`
  // The first problem that does not end by itself; else the first one; empty: none.
  api::ProblemNode worst;
  bool stalled = false;  // it is of the former kind
};

NodeTally TallyNodes(const PoolView& view, int64_t now_ns);

}  // namespace flamefleet::plan
