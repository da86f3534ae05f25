// SPDX-License-Identifier: Apache-2.0
// The query: merges the selected profiles into one.
//
// Thread: any. Bounds: QueryLimits.
// Errors: kNotFound nothing matches. The query's own doing, and the message says how to narrow it:
//         kResourceExhausted the result is too large, kDeadlineExceeded it takes too long,
//         kFailedPrecondition the profiles have different sample types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/pprof/profile.h"
#include "base/pprof/top.h"
#include "base/status.h"
#include "store/db/database.h"
#include "store/match/selector.h"
#include "store/match/time_range.h"

namespace flamefleet::store {

struct QueryLimits {
  size_t max_merge_bytes = 256 << 20;
  int64_t max_duration_ns = kMaxSelectionNs;
};

struct MergedProfile {
  pprof::Profile profile;
  std::string name;     // profile type: the __name__ of the series; several are joined by commas
  size_t profiles = 0;  // that went in
  size_t series = 0;
};

// With a sample type in the selector, the result has only that one.
Result<MergedProfile> MergeProfiles(Database* database, const Clock& clock,
                                    const Selector& selector, const TimeRange& range,
                                    const QueryLimits& limits);

}  // namespace flamefleet::store
