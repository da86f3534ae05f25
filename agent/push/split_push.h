// SPDX-License-Identifier: Apache-2.0
// SplitPush: one push that is too large for its backend as two that are smaller.
//
// Thread: any; pure.
// Errors: kResourceExhausted a profile of one sample cannot be split; kInvalidArgument the body is
//         no push or its profile is damaged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/spool/spool.h"
#include "base/status.h"

namespace flamefleet::agent {

// Halves of the samples, with what they need of the rest. No two profiles of one label set may
// share a time, so the second half is a part of `spread_ns` later, and each keeps a part of the
// spread.
Result<std::vector<SpooledProfile>> SplitPush(const SpooledProfile& profile);

// Bytes of a pprof, plain or gzip, decompressed; of what is damaged, anything.
int64_t UncompressedBytes(std::string_view pprof);

}  // namespace flamefleet::agent
