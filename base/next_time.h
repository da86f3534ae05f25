// SPDX-License-Identifier: Apache-2.0
// NextTime: the wall-clock time of the next of things that never share one.
//
// Thread: any; pure. Units: nanoseconds.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace flamefleet {

// A clock that was set back by more was wrong before, and is followed.
constexpr int64_t kClockSetBackNs = kNanosPerSecond;

// `last_ns` is the time of the one before, 0 for none. A clock that stands still or steps back by
// up to kClockSetBackNs gives the nanosecond after that.
constexpr int64_t NextTime(int64_t wall_ns, int64_t last_ns) {
  const bool follows = wall_ns > last_ns || last_ns - wall_ns > kClockSetBackNs;
  return follows ? wall_ns : last_ns + 1;
}

}  // namespace flamefleet
