// SPDX-License-Identifier: Apache-2.0
// Assignment: what the operator wants of this node, kept in step with its snapshots and deltas, and
// what that means for each part of the agent.
//
// Thread: none of its own; one owner. Pure: no I/O, no clock.
// Errors: kDataLoss a delta that does not follow the version in force: the stream is broken;
//         kInvalidArgument a message without content.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/health/collection_health.h"
#include "agent/health/cpu_budget.h"
#include "agent/pipeline/cpu_pipeline.h"
#include "agent/push/pusher.h"
#include "agent/scrape/scrape_job.h"
#include "base/status.h"
#include "proto/fleet/control.pb.h"

namespace flamefleet::agent {

// What each part of the agent has to do.
struct Work {
  CpuLimits cpu;                             // frequency 0: not said yet
  uint32_t stack_depth = 0;                  // user frames; 0: not said
  bool inlines = true;                       // inlined functions and lines are looked up
  std::vector<std::string> debuginfod_urls;  // asked for debug files that are not on the node
  std::vector<BackendConfig> backends;
  std::vector<CpuTarget> cpu_targets;       // with an id: containers that have started
  std::optional<HostSeries> host;           // processes of the node are profiled too
  std::vector<ScrapeJob> scrape_jobs;       // pods that have an address
  std::vector<CollectionSpec> collections;  // all that is wanted, startable or not
};

class Assignment {
 public:
  // Takes a snapshot or delta into force. After an error nothing has changed.
  Status Apply(const fleet::v1alpha1::OperatorMessage& message);

  // Of the last message; what is acknowledged.
  uint64_t version() const { return version_; }

  // All of it in one message.
  fleet::v1alpha1::Snapshot ToSnapshot() const;

  // `window`: how often a sampled container gives a profile.
  Work BuildWork(std::chrono::milliseconds window) const;

 private:
  uint64_t version_ = 0;
  bool has_snapshot_ = false;
  fleet::v1alpha1::AgentConfig config_;
  std::map<std::string, fleet::v1alpha1::PodAssignment> pods_;  // by UID
};

}  // namespace flamefleet::agent
