// SPDX-License-Identifier: Apache-2.0
// BuildReport: what the agent tells the operator about its collections and its node.
//
// Thread: any; pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/health/collection_health.h"
#include "agent/spool/spool.h"
#include "proto/fleet/control.pb.h"

namespace flamefleet::agent {

struct NodeProblem {
  std::string_view reason;  // of base/reasons.h
  std::string message;
};

struct NodeStatus {
  bool sampling = false;                    // eBPF sampling runs
  std::vector<std::string> problems;        // why not: what is missing and what to do
  std::vector<NodeProblem> shortages;       // what is done less than wanted
  std::map<std::string, Backlog> backlogs;  // by backend
};

fleet::v1alpha1::Report BuildReport(const std::vector<CollectionStatus>& collections,
                                    const NodeStatus& node);

}  // namespace flamefleet::agent
