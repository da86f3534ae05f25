// SPDX-License-Identifier: Apache-2.0
// TokenBucket: lets `burst` things pass at once and one per `interval` in the long run.
//
// Thread: one. Units: nanoseconds of any monotonic clock, passed in.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace flamefleet {

class TokenBucket {
 public:
  TokenBucket(int burst, std::chrono::nanoseconds interval, int64_t now_ns)
      : full_ns_(interval.count() * burst), interval_ns_(interval.count()), empty_ns_(now_ns) {
    empty_ns_ -= full_ns_;
  }

  // False, and nothing taken, when there is no token.
  bool Take(int64_t now_ns) {
    empty_ns_ = std::max(empty_ns_, now_ns - full_ns_);
    if (now_ns - empty_ns_ < interval_ns_) return false;
    empty_ns_ += interval_ns_;
    return true;
  }

 private:
  int64_t full_ns_;  // time that fills it
  int64_t interval_ns_;
  int64_t empty_ns_;  // when it would have been empty: the tokens are the time since
};

}  // namespace flamefleet
