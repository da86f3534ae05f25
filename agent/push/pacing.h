// SPDX-License-Identifier: Apache-2.0
// When a backend may be sent something: Circuit after failures, TokenBucket for rates.
//
// Thread: none of their own; one owner. Pure: the time is an input.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/backoff.h"

namespace flamefleet::agent {

using SteadyTime = std::chrono::steady_clock::time_point;

// Closed: anything goes. After a failure it is open for a back-off, and then one push at a time
// probes the backend, until one is taken.
class Circuit {
 public:
  Circuit(std::chrono::milliseconds first, std::chrono::milliseconds max, double jitter)
      : backoff_(first, max, jitter) {}

  bool failing() const { return failing_; }
  // The earliest time of a push; `max` while a probe is under way.
  SteadyTime NextSend(int under_way) const {
    if (!failing_) return SteadyTime::min();
    return under_way > 0 ? SteadyTime::max() : not_before_;
  }
  // A push that began at `begun` failed. Those that were under way together count once. True when
  // this one opened the circuit.
  bool Fail(SteadyTime begun, SteadyTime now, std::chrono::milliseconds retry_after) {
    if (failing_ && begun < opened_) return false;
    opened_ = now;
    not_before_ = now + std::max(backoff_.Next(), retry_after);
    return !std::exchange(failing_, true);
  }
  // As new.
  void Reset() {
    backoff_.Reset();
    failing_ = false;
  }
  // True when this closed the circuit.
  bool Succeed() {
    backoff_.Reset();
    return std::exchange(failing_, false);
  }

 private:
  Backoff backoff_;
  bool failing_ = false;
  SteadyTime opened_;
  SteadyTime not_before_;
};

// At most `per_second` in the long run. A second's worth may come at once; what is larger than that
// passes and is waited for afterwards.
class TokenBucket {
 public:
  // 0: no limit.
  explicit TokenBucket(int64_t per_second = 0) : per_second_(per_second) {}

  // The earliest time of the next Take.
  SteadyTime NextTake() const { return per_second_ == 0 ? SteadyTime::min() : free_at_ - kBurst; }
  void Take(SteadyTime now, int64_t amount) {
    if (per_second_ == 0) return;
    const std::chrono::duration<double> cost(static_cast<double>(amount) /
                                             static_cast<double>(per_second_));
    free_at_ = std::max(free_at_, now) +
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(cost);
  }

 private:
  static constexpr std::chrono::seconds kBurst{1};
  int64_t per_second_;
  SteadyTime free_at_;  // when all that was taken is paid for
};

}  // namespace flamefleet::agent
