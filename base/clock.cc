// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <absl/time/time.h>

#include <ctime>

namespace flamefleet {
namespace {

int64_t Read(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

class KernelClock final : public Clock {
 public:
  int64_t WallNanos() const override { return Read(CLOCK_REALTIME); }
  int64_t MonotonicNanos() const override { return Read(CLOCK_MONOTONIC); }
};

}  // namespace

const Clock& SystemClock() {
  static const KernelClock clock;
  return clock;
}

std::string FormatRfc3339(int64_t wall_ns) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromUnixNanos(wall_ns),
                          absl::UTCTimeZone());
}

Result<int64_t> ParseRfc3339(const std::string& text) {
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return InvalidArgumentError("time '" + text + "' is not RFC 3339: " + error);
  }
  return absl::ToUnixNanos(time);
}

Result<int64_t> ParseDuration(const std::string& text) {
  constexpr int64_t kHoursIn100Years = 24 * 36525;
  absl::Duration duration;
  if (text.empty() || text[0] == '-' || text[0] == '+' || !absl::ParseDuration(text, &duration) ||
      duration > absl::Hours(kHoursIn100Years)) {
    return InvalidArgumentError("duration '" + text +
                                "': want a value such as 15s, 250ms or 1h30m");
  }
  return absl::ToInt64Nanoseconds(duration);
}

}  // namespace flamefleet
