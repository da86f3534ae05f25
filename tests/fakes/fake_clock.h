// SPDX-License-Identifier: Apache-2.0
// FakeClock: time stands still until a test moves it. Thread: any.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace flamefleet {

class FakeClock final : public Clock {
 public:
  explicit FakeClock(int64_t wall_ns = 1'700'000'000 * kNanosPerSecond) : wall_ns_(wall_ns) {}
  int64_t WallNanos() const override { return wall_ns_; }
  int64_t MonotonicNanos() const override { return monotonic_ns_; }
  void Advance(int64_t nanos) {
    wall_ns_ += nanos;
    monotonic_ns_ += nanos;
  }
  void StepWall(int64_t nanos) { wall_ns_ += nanos; }

 private:
  std::atomic<int64_t> wall_ns_;
  std::atomic<int64_t> monotonic_ns_{1};
};

}  // namespace flamefleet
