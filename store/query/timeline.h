// SPDX-License-Identifier: Apache-2.0
// Totals over time, by the values of a label; and the profile types that there are. Both read the
// totals that were stored with each profile, no pprof.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/db/database.h"
#include "store/match/selector.h"
#include "store/match/time_range.h"

namespace flamefleet::store {

constexpr size_t kMaxTimelinePoints = 2000;   // per line
constexpr size_t kMaxTimelineLines = 10'000;  // values of the label
constexpr size_t kMaxTimelineSums = 1 << 20;  // points of all lines
// Of a profile that says that it lasted longer, only this much is spread over the steps.
constexpr int64_t kMaxSpreadNs = int64_t{3600} * 1'000'000'000;

struct Timeline {
  struct Line {
    int64_t total = 0;
    // points[i]: of each profile the part of its time that lies in step i; of one of a moment, or
    // whose duration is not known, all of it where it begins. Of levels (level.h) the means of the
    // steps, and `total` is the mean.
    std::vector<int64_t> points;
  };
  std::string type;  // full; empty when nothing matches
  std::string unit;
  bool is_level = false;  // see level.h
  int64_t step_ns = 0;
  std::map<std::string, Line> lines;  // by value of the label; "" for series without it
};

// The sums of the steps of `range`, one line per value of `by_label` (one line "" when empty).
// kInvalidArgument: more than kMaxTimelinePoints steps; kFailedPrecondition: several sample types
// match; kResourceExhausted: more than kMaxTimelineLines values, or kMaxTimelineSums points.
Result<Timeline> SelectTimeline(Database* database, const Selector& selector,
                                const TimeRange& range, int64_t step_ns,
                                const std::string& by_label);

// {"type", "unit", "level", "from", "until", "stepSeconds", "lineCount", "total", "lines":
// [{"value", "total", "points"}, ...]}: the `limit` lines with the largest totals, largest first;
// lineCount and total are of all.
std::string TimelineAsJson(const Timeline& timeline, const TimeRange& range, size_t limit);

// {"types": [{"type", "unit", "default"}, ...]} of the selected series: what their newest profiles
// have. "default" is true for the sample type that a person wants to see first.
Result<std::string> TypesAsJson(Database* database, const Selector& selector,
                                const TimeRange& range);

}  // namespace flamefleet::store
