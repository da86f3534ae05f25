// SPDX-License-Identifier: Apache-2.0
// What flows between the stages of the agent. Values only: moved from stage to stage, never shared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "base/profile_type.h"
#include "base/stack_ends.h"

namespace flamefleet::agent {

using Labels = std::map<std::string, std::string>;

// One collection: what health is kept for. Without Kubernetes pod_uid is empty and container is the
// service.
struct CollectionKey {
  std::string pod_uid;
  std::string container;
  ProfileType type = ProfileType::kCpu;

  friend auto operator<=>(const CollectionKey&, const CollectionKey&) = default;
};

// A finished profile, ready to be sent: by agent/pipeline (eBPF) and agent/scrape, to agent/push.
struct FinishedProfile {
  CollectionKey collection;
  std::string backend;  // name of the ProfilingBackend; empty: the only one
  Labels labels;        // complete, with service_name, without __name__
  int64_t time_ns = 0;  // start of the window, wall clock; also in the pprof. No two profiles of
                        // one label set share it
  std::string pprof;    // gzip
  uint64_t samples = 0;
  StackEnds stack_ends{};  // of `samples`, when they were taken by agent/pipeline
};

}  // namespace flamefleet::agent
