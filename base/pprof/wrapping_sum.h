// SPDX-License-Identifier: Apache-2.0
// WrappingSum: values come from programs we do not trust, and a signed overflow is undefined.
// Thread: any.
#pragma once

#include <cstdint>

namespace flamefleet::pprof {

inline int64_t WrappingSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace flamefleet::pprof
