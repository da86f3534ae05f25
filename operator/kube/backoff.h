// SPDX-License-Identifier: Apache-2.0
// Backoff: how long to wait after the n-th failure in a row.
//
// Thread: one. Bounds: from `first`, doubling, to `max`; with jitter the wait is up to that much
// longer (0.5: half), so that many who failed together do not come back together.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace flamefleet {

class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds max, double jitter)
      : first_(first), max_(max), jitter_(jitter) {}

  std::chrono::milliseconds Next() {
    next_ = next_.count() == 0 ? first_ : std::min(max_, next_ * 2);
    std::uniform_real_distribution<double> extra(1.0, 1.0 + jitter_);
    return std::chrono::milliseconds(
        static_cast<int64_t>(static_cast<double>(next_.count()) * extra(random_)));
  }
  void Reset() { next_ = std::chrono::milliseconds(0); }

 private:
  const std::chrono::milliseconds first_;
  const std::chrono::milliseconds max_;
  const double jitter_;
  std::chrono::milliseconds next_{0};
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace flamefleet
