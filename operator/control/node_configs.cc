// SPDX-License-Identifier: Apache-2.0
#include "operator/control/node_configs.h"

#include <algorithm>

namespace flamefleet::control {

void BackendUse::Refresh(const plan::NodeAssignment& assignment, const plan::NodeReport& report,
                         int64_t now_ns) {
  std::erase_if(until_ns_, [&](const auto& entry) { return entry.second <= now_ns; });
  const int64_t until_ns = now_ns + kKeepNs;
  for (const auto& [uid, pod] : assignment) {
    for (const plan::ContainerAssignment& container : pod.containers)
      until_ns_[container.backend] = until_ns;
    for (const plan::PullJob& pull : pod.pulls)
      until_ns_[pull.backend] = until_ns;
  }
  for (const auto& [backend, backlog] : report.backlogs)
    until_ns_[backend] = until_ns;
}

bool BackendUse::IsDue(int64_t now_ns) const {
  return std::ranges::any_of(until_ns_, [&](const auto& entry) { return entry.second <= now_ns; });
}

std::set<std::string> BackendUse::Names() const {
  std::set<std::string> names;
  for (const auto& [name, until_ns] : until_ns_)
    names.insert(name);
  return names;
}

ConfigPtr NodeConfigs::For(const ConfigPtr& all, const std::set<std::string>& used) {
  std::set<std::string> with_credentials;
  bool withheld = false;
  for (const plan::Backend& backend : all->backends) {
    if (backend.authorization.empty()) continue;
    if (used.contains(backend.name)) {
      with_credentials.insert(backend.name);
    } else {
      withheld = true;
    }
  }
  if (!withheld) return all;
  const auto [found, added] = kept_.try_emplace({all, with_credentials});
  if (!added) return found->second;
  plan::AgentConfig config = *all;
  for (plan::Backend& backend : config.backends) {
    if (backend.authorization.empty() || used.contains(backend.name)) continue;
    backend.authorization.clear();
    backend.hold = true;
  }
  ConfigPtr made = std::make_shared<const plan::AgentConfig>(std::move(config));
  if (kept_.size() > kMaxKept) {
    kept_.clear();
  } else {
    found->second = made;
  }
  return made;
}

}  // namespace flamefleet::control
