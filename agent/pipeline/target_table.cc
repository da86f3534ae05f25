// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/target_table.h"

#include <utility>

#include "agent/host/container_id.h"

namespace flamefleet::agent {
namespace {

bool SameContent(const CpuTarget& a, const CpuTarget& b) {
  return a.container_id == b.container_id && a.collection == b.collection &&
         a.backend == b.backend && a.labels == b.labels;
}

}  // namespace

std::shared_ptr<const CpuTarget> TargetTable::TargetOf(
    const std::vector<std::string>& container_ids) const {
  for (const std::string& id : container_ids) {
    if (const auto found = targets_.find(id); found != targets_.end()) return found->second;
  }
  return nullptr;
}

std::vector<TargetTable::Verdict> TargetTable::Replace(std::vector<CpuTarget> targets) {
  std::map<std::string, std::shared_ptr<const CpuTarget>> old = std::exchange(targets_, {});
  for (CpuTarget& target : targets) {
    std::string id = target.container_id;
    const auto known = old.find(id);
    targets_[std::move(id)] = known != old.end() && SameContent(*known->second, target)
                                  ? known->second
                                  : std::make_shared<const CpuTarget>(std::move(target));
  }
  std::vector<Verdict> changed;
  for (auto& [cgroup_id, cgroup] : cgroups_) {
    const bool was_wanted = cgroup.target != nullptr;
    cgroup.target = TargetOf(cgroup.container_ids);
    const bool wanted = cgroup.target != nullptr;
    if (wanted != was_wanted) changed.push_back({cgroup_id, wanted});
  }
  return changed;
}

bool TargetTable::Add(uint64_t cgroup_id, std::string_view path,
                      std::optional<uint64_t>* forgotten) {
  forgotten->reset();
  if (!cgroups_.contains(cgroup_id)) {
    if (cgroups_.size() >= max_cgroups_) {
      *forgotten = order_.front();
      cgroups_.erase(order_.front());
      order_.pop_front();
    }
    order_.push_back(cgroup_id);
  }
  Cgroup& cgroup = cgroups_[cgroup_id];
  cgroup.container_ids = ContainerIdsOfCgroup(path);
  cgroup.target = TargetOf(cgroup.container_ids);
  return cgroup.target != nullptr;
}

std::shared_ptr<const CpuTarget> TargetTable::Find(uint64_t cgroup_id) const {
  const auto found = cgroups_.find(cgroup_id);
  return found == cgroups_.end() ? nullptr : found->second.target;
}

}  // namespace flamefleet::agent
