// SPDX-License-Identifier: Apache-2.0
// DeliveryLedger: the books of delivery: what was produced, what became of it, and who is told.
//   produced + recovered + split = delivered + dropped (by reason) + waiting
//
// Thread: any.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/spool/spool.h"
#include "agent/types.h"
#include "base/metrics.h"

namespace flamefleet::agent {

// Told what became of the profiles of a collection. Called on the senders' threads.
class DeliveryObserver {
 public:
  DeliveryObserver() = default;
  DeliveryObserver(const DeliveryObserver&) = delete;
  DeliveryObserver& operator=(const DeliveryObserver&) = delete;
  virtual ~DeliveryObserver() = default;
  virtual void OnDelivered(const CollectionKey& collection) = 0;
  // The profile will be sent again, or is lost; `reason` from base/reasons.h.
  virtual void OnNotDelivered(const CollectionKey& collection, std::string_view reason,
                              const std::string& message) = 0;
};

class DeliveryLedger {
 public:
  // `observer` may be null.
  DeliveryLedger(Metrics* metrics, DeliveryObserver* observer);

  void Produced(int64_t profiles) { produced_.Increment(static_cast<double>(profiles)); }
  void Recovered(int64_t profiles) { recovered_.Increment(static_cast<double>(profiles)); }
  void Delivered(const SpooledProfile& profile);
  // Not delivered, and still there.
  void Delayed(const CollectionKey& collection, std::string_view reason,
               const std::string& message);
  void Retried() { retries_.Increment(); }
  // `profile` is one profile in another form now: in so many parts.
  void Split(size_t parts) { split_.Increment(static_cast<double>(parts - 1)); }
  void Dropped(const SpooledProfile& profile, std::string_view reason, const std::string& message);
  void Dropped(const std::vector<SpooledProfile>& profiles, std::string_view reason,
               std::string_view message);
  // Without knowing which.
  void Lost(int64_t profiles, std::string_view reason);
  void Answered(std::chrono::duration<double> after) { seconds_.Observe(after.count()); }
  void ShowWaiting(int64_t profiles, int64_t bytes);

 private:
  DeliveryObserver* const observer_;
  CounterMetric produced_;
  CounterMetric recovered_;
  CounterMetric split_;
  CounterMetric delivered_;
  CounterMetric delivered_bytes_;
  CounterMetric retries_;
  std::map<std::string_view, CounterMetric> dropped_;  // by reason; constant after construction
  GaugeMetric waiting_;
  GaugeMetric waiting_bytes_;
  HistogramMetric seconds_;
};

}  // namespace flamefleet::agent
