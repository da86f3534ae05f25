// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/target_table.h"

#include <utility>

#include "agent/host/container_id.h"

namespace flamefleet::agent {

std::shared_ptr<const CpuTarget> TargetTable::TargetOf(
    const std::vector<std::string>& container_ids) const {
  for (const std::string& id : container_ids) {
    if (const auto found = targets_.find(id); found != targets_.end()) return found->second;
  }
  return nullptr;
}

std::vector<TargetTable::Verdict> TargetTable::Replace(std::vector<CpuTarget> targets,
                                                       bool host_wanted) {
  std::map<std::string, std::shared_ptr<const CpuTarget>> old = std::exchange(targets_, {});
  const std::set<std::string> old_pods = std::exchange(pods_, {});
  for (CpuTarget& target : targets) {
    pods_.insert(target.collection.pod_uid);
    std::string id = target.container_id;
    if (id.empty()) continue;
    const auto known = old.find(id);
    targets_[std::move(id)] = known != old.end() && *known->second == target
                                  ? known->second
                                  : std::make_shared<const CpuTarget>(std::move(target));
  }
  const bool host_was_wanted = std::exchange(host_wanted_, host_wanted);
  std::vector<Verdict> changed;
  for (auto& [cgroup_id, cgroup] : cgroups_) {
    const bool was_recorded = IsRecorded(cgroup, host_was_wanted);
    cgroup.target = TargetOf(cgroup.container_ids);
    if (!MayHaveStarted(cgroup))
      cgroup.windows_to_hold = 0;
    else if (!old_pods.contains(cgroup.pod_uid))
      cgroup.windows_to_hold = kHeldWindows;  // it was met before anybody told of its pod
    const bool is_recorded = IsRecorded(cgroup, host_wanted_);
    if (is_recorded != was_recorded) changed.push_back({cgroup_id, is_recorded});
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
  cgroup.pod_uid = PodUidOfCgroup(path);
  cgroup.target = TargetOf(cgroup.container_ids);
  cgroup.windows_to_hold = MayHaveStarted(cgroup) ? kHeldWindows : 0;
  cgroup.host_service.reset();
  if (IsHostCgroup(path)) cgroup.host_service = ServiceOfCgroup(path);
  return IsRecorded(cgroup, host_wanted_);
}

bool TargetTable::MayHaveStarted(const Cgroup& cgroup) const {
  return !cgroup.container_ids.empty() && pods_.contains(cgroup.pod_uid);
}

std::shared_ptr<const CpuTarget> TargetTable::Find(uint64_t cgroup_id) const {
  const auto found = cgroups_.find(cgroup_id);
  return found == cgroups_.end() ? nullptr : found->second.target;
}

bool TargetTable::IsHeld(uint64_t cgroup_id) const {
  const auto found = cgroups_.find(cgroup_id);
  return found != cgroups_.end() && !found->second.target && found->second.windows_to_hold > 0;
}

const std::string* TargetTable::FindHostService(uint64_t cgroup_id) const {
  const auto found = cgroups_.find(cgroup_id);
  return host_wanted_ && found != cgroups_.end() && found->second.host_service
             ? &*found->second.host_service
             : nullptr;
}

std::vector<TargetTable::Verdict> TargetTable::EndWindow() {
  std::vector<Verdict> changed;
  for (auto& [cgroup_id, cgroup] : cgroups_) {
    if (cgroup.windows_to_hold == 0) continue;
    --cgroup.windows_to_hold;
    if (!IsRecorded(cgroup, host_wanted_)) changed.push_back({cgroup_id, false});
  }
  return changed;
}

}  // namespace flamefleet::agent
