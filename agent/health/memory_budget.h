// SPDX-License-Identifier: Apache-2.0
// MemoryBudget: how large the caches may be, so that the agent stays clear of its memory limit.
//
// From kShrinkAt of the limit on they halve with each look, down to a 2^kMostHalvings-th; below
// kGrowAt they double again.
//
// Thread: one owner; pure.
#pragma once

#include <cstdint>

namespace flamefleet::agent {

class MemoryBudget {
 public:
  static constexpr double kShrinkAt = 0.8;
  static constexpr double kGrowAt = 0.6;
  static constexpr int kMostHalvings = 4;

  // True when caches have to become smaller now.
  bool Observe(uint64_t used_bytes, uint64_t limit_bytes) {
    const double share = static_cast<double>(used_bytes) / static_cast<double>(limit_bytes);
    if (share < kGrowAt && halvings_ > 0) --halvings_;
    if (share < kShrinkAt || halvings_ == kMostHalvings) return false;
    ++halvings_;
    return true;
  }

  // How many times the caches are halved.
  int halvings() const { return halvings_; }

 private:
  int halvings_ = 0;
};

}  // namespace flamefleet::agent
