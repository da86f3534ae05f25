// SPDX-License-Identifier: Apache-2.0
// CollectionHealthBook: what is true about each collection of this node: delivered means that the
// backend acknowledged a profile, not that one was taken.
//
// A state machine per collection:
//   kWaiting    -> nothing delivered yet, nothing wrong
//   kDelivering -> acknowledged within the last kFreshWindows windows
//   kIdle       -> collection works and had nothing to deliver for that long
//   kFailing    -> the last thing that happened went wrong; since the first failure after a
//   delivery
// A delivery, or a collection that worked and found nothing, ends kFailing.
//
// Thread: any; internally locked. Units: wall time in nanoseconds.
// Bounds: one entry per collection in force; messages are cut at kMaxMessageBytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/push/ledger.h"
#include "agent/scrape/scraper.h"
#include "agent/types.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace flamefleet::agent {

constexpr size_t kMaxMessageBytes = 256;
constexpr int kFreshWindows = 4;

enum class CollectionState { kWaiting, kDelivering, kIdle, kFailing };

struct CollectionSpec {
  CollectionKey key;
  bool ebpf = false;                   // sampled by this agent, not pulled
  bool can_run = true;                 // its container has started, its pod has an address
  std::chrono::nanoseconds window{0};  // a profile is expected this often
};

struct CollectionStatus {
  CollectionKey key;
  CollectionState state = CollectionState::kWaiting;
  std::string reason;  // of kFailing
  std::string message;
  int64_t last_delivered_ns = 0;  // 0: never
  int64_t failing_since_ns = 0;
  uint64_t profiles_delivered = 0;
  StackEnds stack_ends{};  // of the samples that were taken since the agent began
};

class CollectionHealthBook final : public DeliveryObserver, public ScrapeObserver {
 public:
  explicit CollectionHealthBook(const Clock& clock) : clock_(clock) {}

  // Replaces the collections in force; what is known about those that stay is kept.
  void SetCollections(const std::vector<CollectionSpec>& specs);

  // eBPF sampling does not run: every collection that needs it fails with this message, until one
  // that is "".
  void SetSamplingUnavailable(const std::string& message);

  // A pull failed, or worked without anything to deliver.
  void OnCollectFailed(const CollectionKey& key, std::string_view reason,
                       const std::string& message) override;
  void OnNothingToDeliver(const CollectionKey& key) override;

  // `profile` was taken by eBPF.
  void CountStacks(const FinishedProfile& profile);

  void OnDelivered(const CollectionKey& key) override;
  void OnNotDelivered(const CollectionKey& key, std::string_view reason,
                      const std::string& message) override;

  std::vector<CollectionStatus> Snapshot() const;

  // Waits until a state, reason or the set of collections changed since the last call, stop is
  // requested or the time is over; true when something changed.
  bool AwaitChange(const std::stop_token& stop, std::chrono::nanoseconds timeout);

 private:
  struct Entry {
    CollectionSpec spec;
    int64_t in_force_since_ns = 0;
    int64_t last_good_ns = 0;  // delivered, or worked with nothing to deliver; 0: never
    CollectionStatus status;   // state is derived in StateOf, but for kFailing
  };

  void Fail(const CollectionKey& key, std::string_view reason, const std::string& message);
  void MarkGood(Entry* entry) FF_REQUIRES(mutex_);
  CollectionStatus StatusOf(const Entry& entry, int64_t now) const FF_REQUIRES(mutex_);
  void Changed() FF_REQUIRES(mutex_);

  const Clock& clock_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool has_change_ FF_GUARDED_BY(mutex_) = false;
  std::string sampling_unavailable_ FF_GUARDED_BY(mutex_);
  std::map<CollectionKey, Entry> entries_ FF_GUARDED_BY(mutex_);
};

}  // namespace flamefleet::agent
