// SPDX-License-Identifier: Apache-2.0
// SelectionTime: how long a selection may take.
//
// Thread: any. Errors: kDeadlineExceeded, and the message says how to narrow the query.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace flamefleet::store {

constexpr int64_t kMaxSelectionNs = 60 * kNanosPerSecond;

class SelectionTime {
 public:
  explicit SelectionTime(const Clock& clock, int64_t limit_ns = kMaxSelectionNs)
      : clock_(clock), limit_ns_(limit_ns), until_ns_(clock.MonotonicNanos() + limit_ns) {}

  Status Check() const {
    if (clock_.MonotonicNanos() <= until_ns_) return OkStatus();
    return DeadlineExceededError("the query takes longer than " +
                                 std::to_string(limit_ns_ / kNanosPerSecond) +
                                 " s; choose a shorter time range or fewer series");
  }

 private:
  const Clock& clock_;
  const int64_t limit_ns_;
  const int64_t until_ns_;
};

}  // namespace flamefleet::store
