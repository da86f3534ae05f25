// SPDX-License-Identifier: Apache-2.0
// TimeRange: from when to when a query looks, and how people write it.
//
// Thread: any. Units: nanoseconds since 1970 UTC.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace flamefleet::store {

// Both ends belong to it.
struct TimeRange {
  int64_t from_ns = 0;
  int64_t until_ns = 0;
};

// "now", "now-1h" (also d for days), RFC 3339, or a Unix time in seconds, milliseconds,
// microseconds or nanoseconds, told apart by its size. kInvalidArgument otherwise.
Result<int64_t> ParseTime(const std::string& text, int64_t now_ns);

// The range of a query; an empty `from` is one hour ago, an empty `until` is now. kInvalidArgument
// also when it ends before it begins.
Result<TimeRange> ParseTimeRange(const std::string& from, const std::string& until, int64_t now_ns);

}  // namespace flamefleet::store
