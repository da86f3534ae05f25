// SPDX-License-Identifier: Apache-2.0
// TargetTable: which cgroup belongs to which wanted container, and which are of the host.
//
// Cgroups are learnt when the kernel reports them and kept while nothing is known against them, so
// that a container which becomes wanted later is recorded at once. An unknown container of a pod
// that has a target is held for kHeldWindows: it may be one that has just started. A sample is only
// ever attributed by container id.
//
// Thread: one owner. Bounds: FF_MAX_CGROUPS cgroups; the oldest is forgotten, which the caller must
// tell the kernel so that it is reported again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/pipeline/cpu_pipeline.h"

namespace flamefleet::agent {

constexpr int kHeldWindows = 2;

class TargetTable {
 public:
  struct Verdict {
    uint64_t cgroup_id = 0;
    bool wanted = false;
  };

  explicit TargetTable(size_t max_cgroups) : max_cgroups_(max_cgroups) {}

  // Replaces the wanted containers, and whether cgroups of the host are wanted; returns the cgroups
  // whose verdict is another one now.
  std::vector<Verdict> Replace(std::vector<CpuTarget> targets, bool host_wanted = false);

  // Learns a cgroup; returns whether it is wanted or held, and in `forgotten` the one that had to
  // go.
  bool Add(uint64_t cgroup_id, std::string_view path, std::optional<uint64_t>* forgotten);

  // The target whose container the cgroup is inside of; null when none is wanted. A target that
  // Replace got again with equal content stays the same object.
  std::shared_ptr<const CpuTarget> Find(uint64_t cgroup_id) const;
  bool IsHeld(uint64_t cgroup_id) const;
  // Of a wanted cgroup of the host: its service, "" for one that is in none. Else null.
  const std::string* FindHostService(uint64_t cgroup_id) const;

  // Returns the cgroups that are not held any longer, in vain.
  std::vector<Verdict> EndWindow();

 private:
  struct Cgroup {
    std::vector<std::string> container_ids;  // outermost first
    std::string pod_uid;
    std::optional<std::string> host_service;  // set when it is of the host
    int windows_to_hold = 0;
    std::shared_ptr<const CpuTarget> target;
  };

  static bool IsRecorded(const Cgroup& cgroup, bool host_wanted) {
    return cgroup.target != nullptr || cgroup.windows_to_hold > 0 ||
           (host_wanted && cgroup.host_service);
  }
  std::shared_ptr<const CpuTarget> TargetOf(const std::vector<std::string>& container_ids) const;

  // Whether it is of a pod that has a target, so may be the container of one.
  bool MayHaveStarted(const Cgroup& cgroup) const;

  const size_t max_cgroups_;
  std::map<std::string, std::shared_ptr<const CpuTarget>> targets_;  // by container id
  std::set<std::string> pods_;  // UIDs of all that have a target, started or not
  bool host_wanted_ = false;
  std::unordered_map<uint64_t, Cgroup> cgroups_;
  std::deque<uint64_t> order_;  // of cgroups_, oldest first
};

}  // namespace flamefleet::agent
