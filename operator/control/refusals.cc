// SPDX-License-Identifier: Apache-2.0
#include "operator/control/refusals.h"

#include "base/log.h"
#include "operator/security/admission.h"

namespace flamefleet::control {

Refusals::Refusals(const Clock& clock, Metrics& metrics) : clock_(clock) {
  for (const std::string_view refusal : security::refusal::kAll) {
    counters_.emplace(refusal, metrics.Counter("flamefleet_operator_agents_refused_total",
                                               "Control streams that were refused or ended because "
                                               "the agent may not be served.",
                                               {{"reason", std::string(refusal)}}));
  }
}

void Refusals::Note(std::string_view refusal, const std::string& peer, const std::string& node,
                    const std::string& error) {
  counters_.at(refusal).Increment();
  {
    const MutexLock lock(&mutex_);
    const int64_t now_ns = clock_.MonotonicNanos();
    const auto [logged, first] = logged_ns_.try_emplace(refusal, now_ns);
    if (!first && now_ns - logged->second < kLogIntervalNs) return;
    logged->second = now_ns;
  }
  Log(LogLevel::kWarn, "agent refused",
      {{"reason", refusal}, {"peer", peer}, {"node", node}, {"error", error}});
}

}  // namespace flamefleet::control
