// SPDX-License-Identifier: Apache-2.0
// The hottest functions as text for people and as JSON for programs.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "store/match/time_range.h"
#include "store/query/query.h"

namespace flamefleet::store {

std::string TopAsText(const MergedProfile& merged, const TimeRange& range, size_t limit);
std::string TopAsJson(const MergedProfile& merged, const TimeRange& range, size_t limit);

// "1.50s", "2.00MB", "17": a value of a unit of pprof, at most two decimals.
std::string FormatValue(int64_t value, std::string_view unit);

}  // namespace flamefleet::store
