// SPDX-License-Identifier: Apache-2.0
#include "agent/push/ledger.h"

#include "base/reasons.h"

namespace flamefleet::agent {
namespace {

constexpr const char* kDroppedName = "flamefleet_agent_profiles_dropped_total";
constexpr const char* kDroppedHelp = "Profiles that were not delivered, by reason.";

std::map<std::string_view, CounterMetric> DropCounters(Metrics* metrics) {
  std::map<std::string_view, CounterMetric> counters;
  for (const std::string_view reason :
       {reasons::kQueueFull, reasons::kExpired, reasons::kBackendRefused, reasons::kProfileTooLarge,
        reasons::kNoBackend, reasons::kSpoolDamaged, reasons::kAgentStopped}) {
    counters.emplace(
        reason, metrics->Counter(kDroppedName, kDroppedHelp, {{"reason", std::string(reason)}}));
  }
  return counters;
}

}  // namespace

DeliveryLedger::DeliveryLedger(Metrics* metrics, DeliveryObserver* observer)
    : observer_(observer),
      produced_(metrics->Counter("flamefleet_agent_profiles_produced_total",
                                 "Profiles that were collected and handed to delivery.")),
      recovered_(metrics->Counter("flamefleet_agent_profiles_recovered_total",
                                  "Profiles that an earlier agent left in the spool.")),
      split_(metrics->Counter("flamefleet_agent_profiles_split_total",
                              "Profiles that came in addition by splitting one that was too large "
                              "for its backend.")),
      delivered_(metrics->Counter("flamefleet_agent_profiles_delivered_total",
                                  "Profiles that a backend acknowledged.")),
      delivered_bytes_(metrics->Counter("flamefleet_agent_delivered_bytes_total",
                                        "Bytes of the pushes that a backend acknowledged.")),
      retries_(metrics->Counter("flamefleet_agent_push_retries_total",
                                "Pushes that failed and will be tried again.")),
      dropped_(DropCounters(metrics)),
      waiting_(metrics->Gauge("flamefleet_agent_profiles_waiting",
                              "Profiles that wait for a backend or are being sent.")),
      waiting_bytes_(metrics->Gauge("flamefleet_agent_waiting_bytes",
                                    "Bytes of the profiles that wait or are being sent.")),
      seconds_(metrics->Histogram("flamefleet_agent_push_duration_seconds",
                                  "Time until a backend answered a push, or failed to.",
                                  {0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30})) {}

void DeliveryLedger::Delivered(const SpooledProfile& profile) {
  delivered_.Increment();
  delivered_bytes_.Increment(static_cast<double>(profile.bytes));
  if (observer_ != nullptr) observer_->OnDelivered(profile.collection);
}

void DeliveryLedger::Delayed(const CollectionKey& collection, std::string_view reason,
                             const std::string& message) {
  if (observer_ != nullptr) observer_->OnNotDelivered(collection, reason, message);
}

void DeliveryLedger::Dropped(const SpooledProfile& profile, std::string_view reason,
                             const std::string& message) {
  dropped_.at(reason).Increment();
  if (observer_ != nullptr) observer_->OnNotDelivered(profile.collection, reason, message);
}

void DeliveryLedger::Dropped(const std::vector<SpooledProfile>& profiles, std::string_view reason,
                             std::string_view message) {
  for (const SpooledProfile& profile : profiles)
    Dropped(profile, reason, std::string(message));
}

void DeliveryLedger::Lost(int64_t profiles, std::string_view reason) {
  dropped_.at(reason).Increment(static_cast<double>(profiles));
}

void DeliveryLedger::ShowWaiting(int64_t profiles, int64_t bytes) {
  waiting_.Set(static_cast<double>(profiles));
  waiting_bytes_.Set(static_cast<double>(bytes));
}

}  // namespace flamefleet::agent
