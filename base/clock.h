// SPDX-License-Identifier: Apache-2.0
// Clock: the only source of time, so that tests own it.
//
// Thread: any. Units: nanoseconds; wall time since 1970 UTC, monotonic time since an unstated
// start.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace flamefleet {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int64_t kNanosPerMilli = 1'000'000;

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  virtual int64_t WallNanos() const = 0;
  virtual int64_t MonotonicNanos() const = 0;
};

// The kernel's clocks.
const Clock& SystemClock();

// "2026-11-29T17:05:00.123Z" (milliseconds, as many as needed for logs and status).
std::string FormatRfc3339(int64_t wall_ns);

// Reads RFC 3339 with optional fraction and an offset or Z; kInvalidArgument otherwise.
Result<int64_t> ParseRfc3339(const std::string& text);

// Reads a Go/Kubernetes duration such as "1h30m", "250ms", "15s"; no sign; at most 100 years.
// Nanoseconds.
Result<int64_t> ParseDuration(const std::string& text);

}  // namespace flamefleet
