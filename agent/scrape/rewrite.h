// SPDX-License-Identifier: Apache-2.0
// RewriteProfile: from the bytes that a pod served to the pprof that is sent: validated, deltas
// only, our time, compact, with types and units that name a series at every backend.
//
// Thread: any; one caller per Delta.
// Errors: kResourceExhausted over kMaxRawBytes or a limit of the decoder, kInvalidArgument not a
//         pprof.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/scrape/delta.h"
#include "base/status.h"

namespace flamefleet::agent {

// After decompression. Backends take 2 to 4 MiB; decoding needs three times the bytes.
constexpr size_t kMaxRawBytes = 16 << 20;

struct RewrittenProfile {
  std::string pprof;  // gzip
  uint64_t samples = 0;
};

// Nothing when there is nothing to send: no sample with a value, as after the first profile of a
// cumulative type. `duration` is the time between two profiles, for those that do not say.
Result<std::optional<RewrittenProfile>> RewriteProfile(std::string_view body, int64_t time_ns,
                                                       std::chrono::nanoseconds duration,
                                                       Delta* delta);

}  // namespace flamefleet::agent
