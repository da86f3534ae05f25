// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/thread_table.h"

#include <utility>

#include "base/utf8.h"

namespace flamefleet::agent {

uint32_t ThreadTable::Number(uint32_t series, uint32_t id, const std::string& name) {
  std::tuple key(series, id, name);
  if (const auto known = numbers_.find(key); known != numbers_.end()) return known->second;
  const auto next = static_cast<uint32_t>(labels_.size());
  size_t& count = counts_[series];
  if (count >= kMaxThreadsOfSeries) {
    if (!others_) {
      others_ = next;
      labels_.push_back({.name = kOtherThreads});
    }
    return *others_;
  }
  ++count;
  labels_.push_back({.id = id, .name = ToUtf8(name)});
  numbers_.emplace(std::move(key), next);
  return next;
}

std::vector<ThreadLabel> ThreadTable::Take() {
  numbers_.clear();
  counts_.clear();
  others_.reset();
  return std::exchange(labels_, {});
}

}  // namespace flamefleet::agent
