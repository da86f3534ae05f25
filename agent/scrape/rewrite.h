// SPDX-License-Identifier: Apache-2.0
// RewriteProfile: from the bytes that a pod served to the pprof that is sent: validated, deltas
// only (by `delta`; null: it has no other values), our time, compact, with types and units that
// name a series at every backend.
//
// Thread: any; one caller per Delta.
// Errors: kResourceExhausted over a limit, kInvalidArgument not a pprof.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/scrape/delta.h"
#include "agent/scrape/scrape_limits.h"
#include "base/status.h"

namespace flamefleet::agent {

struct RewrittenProfile {
  std::string pprof;  // gzip
  uint64_t samples = 0;
};

// Nothing when there is nothing to send: no sample with a value, as after the first profile of a
// cumulative type. `duration` is the time between two profiles, for those that do not say.
Result<std::optional<RewrittenProfile>> RewriteProfile(std::string_view body, int64_t time_ns,
                                                       std::chrono::nanoseconds duration,
                                                       Delta* delta,
                                                       const ScrapeLimits& limits = {});

}  // namespace flamefleet::agent
