// SPDX-License-Identifier: Apache-2.0
// ClockTrust: whether the wall clock is to be believed when it says that profiles are too old. A
// clock that was set ahead by mistake would otherwise delete all of them at once.
//
// Thread: one owner. Pure: times are inputs. Units: nanoseconds.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace flamefleet::store {

class ClockTrust {
 public:
  // A clock that gains more on the monotonic one between two looks was set, or the machine slept.
  static constexpr int64_t kJumpNs = 3600 * kNanosPerSecond;
  // For how long it is doubted then: time to be put right.
  static constexpr int64_t kDoubtNs = 3600 * kNanosPerSecond;

  // What the clocks say now, and whether by that everything is too old, which matters at the first
  // look: there is no other to compare with. True when doubt begins.
  bool Look(int64_t wall_ns, int64_t monotonic_ns, bool all_too_old) {
    const bool doubts =
        last_ ? wall_ns - last_->wall_ns - (monotonic_ns - last_->monotonic_ns) > kJumpNs
              : all_too_old;
    last_ = {wall_ns, monotonic_ns};
    if (doubts) doubted_until_ns_ = monotonic_ns + kDoubtNs;
    return doubts;
  }
  bool Believed(int64_t monotonic_ns) const { return monotonic_ns >= doubted_until_ns_; }

 private:
  struct Times {
    int64_t wall_ns;
    int64_t monotonic_ns;
  };
  std::optional<Times> last_;
  int64_t doubted_until_ns_ = INT64_MIN;
};

}  // namespace flamefleet::store
