// SPDX-License-Identifier: Apache-2.0
// Refusals: agents that may not, or may no longer, be served are all counted, and logged now and
// then.
//
// Thread: any; internally locked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"

namespace flamefleet::control {

class Refusals {
 public:
  // Those of one kind are logged at most this often.
  static constexpr int64_t kLogIntervalNs = kNanosPerSecond;

  Refusals(const Clock& clock, Metrics& metrics);

  // `refusal` is one of security::refusal; `node` is empty when it is not known.
  void Note(std::string_view refusal, const std::string& peer, const std::string& node,
            const std::string& error);

 private:
  const Clock& clock_;
  std::map<std::string_view, CounterMetric> counters_;  // by refusal; constant
  Mutex mutex_;
  std::map<std::string_view, int64_t> logged_ns_ FF_GUARDED_BY(mutex_);
};

}  // namespace flamefleet::control
