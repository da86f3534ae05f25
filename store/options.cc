// SPDX-License-Identifier: Apache-2.0
#include "store/options.h"

#include <algorithm>

namespace flamefleet::store {

int64_t DefaultQueryMemory(std::optional<uint64_t> memory_limit) {
  constexpr int64_t kMost = 256 << 20;
  constexpr int64_t kLeast = 1 << 20;
  if (!memory_limit || *memory_limit / 4 >= kMost) return kMost;
  return std::max(static_cast<int64_t>(*memory_limit / 4), kLeast);
}

bool IsLoopback(const std::string& listen) {
  return listen.starts_with("127.") || listen.starts_with("[::1]:") ||
         listen.starts_with("localhost:");
}

}  // namespace flamefleet::store
