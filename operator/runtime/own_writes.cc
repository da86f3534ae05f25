// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/own_writes.h"

namespace flamefleet {

bool IsOlderVersion(const std::string& version, const std::string& than) {
  return version.size() != than.size() ? version.size() < than.size() : version < than;
}

void OwnWrites::Wrote(const Resource& resource, const std::string& version) {
  Version& waiting = waiting_[current_][resource.plural];
  if (IsOlderVersion(waiting.version, version)) waiting = {resource, version, seen_(resource)};
}

bool OwnWrites::Seen(const std::string& key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return true;
  std::erase_if(found->second, [this](const auto& entry) {
    const Version& wrote = entry.second;
    const std::string seen = seen_(wrote.resource);
    const bool restored = IsOlderVersion(seen, wrote.seen);
    return seen.empty() || restored || !IsOlderVersion(seen, wrote.version);
  });
  if (!found->second.empty()) return false;
  waiting_.erase(found);
  return true;
}

}  // namespace flamefleet
