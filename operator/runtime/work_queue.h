// SPDX-License-Identifier: Apache-2.0
// WorkQueue: which keys must be looked at, each once however often it was asked for.
//
// A key that is added while it waits is not added twice; one that is added while it is processed
// runs once more after Done. So a burst of changes costs one run, a change is never missed, and two
// workers never have the same key.
//
// Thread: any; locked inside. Units: durations on the injected clock. Bounds: one entry per
// distinct key; the back-off of a key goes from kFirstRetry, doubling, to kMaxRetry.
// Errors: none.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"

namespace flamefleet {

class WorkQueue {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr std::chrono::milliseconds kFirstRetry{5};
  static constexpr std::chrono::seconds kMaxRetry{1000};

  WorkQueue(const Clock& clock, Metrics& metrics, const std::string& name);

  // A closed queue, of a standby, takes no key and forgets those that wait: nobody would take them,
  // and keys of objects that come and go would pile up. It begins open.
  void Open();
  void Close();

  // Due after `delay`; a key that already waits keeps the earlier time.
  void Add(const std::string& key, Duration delay = Duration(0));
  // Due after the key's back-off, which grows with each call until Forget.
  void AddAfterFailure(const std::string& key);
  void Forget(const std::string& key);

  // The key that has been due longest; blocks until there is one. Nothing when stop is requested.
  // Done must follow.
  std::optional<std::string> Take(const std::stop_token& stop);
  // Like Take, but nothing when no key is due now.
  std::optional<std::string> TryTake();
  void Done(const std::string& key);

  // Brings the metrics that grow by time alone up to now: before they are read.
  void UpdateMetrics();

  // What it holds, for a person to look at: at most `limit` keys, those due first.
  struct Item {
    std::string key;
    bool processing = false;
    Duration due_in{0};  // negative: overdue; while processing: since when, negative
    int failures = 0;    // in a row
  };
  std::vector<Item> Look(size_t limit) const;

 private:
  using Due = std::pair<int64_t, std::string>;  // monotonic time, key

  void AddLocked(const std::string& key, int64_t due_ns) FF_REQUIRES(mutex_);
  std::optional<std::string> TakeLocked() FF_REQUIRES(mutex_);

  int FailuresOf(const std::string& key) const FF_REQUIRES(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool open_ FF_GUARDED_BY(mutex_) = true;
  // Keys that wait, by due time and by name (the dirty set).
  std::set<Due> schedule_ FF_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> due_of_ FF_GUARDED_BY(mutex_);
  // Keys between Take and Done, with the time Take returned them; and, of those, the ones that were
  // added meanwhile, with their due time.
  std::map<std::string, int64_t> processing_ FF_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> again_ FF_GUARDED_BY(mutex_);
  std::map<std::string, int> failures_ FF_GUARDED_BY(mutex_);

  GaugeMetric depth_;
  CounterMetric adds_;
  CounterMetric retries_;
  HistogramMetric queue_duration_;
  HistogramMetric work_duration_;
  GaugeMetric unfinished_;
  GaugeMetric longest_;
};

}  // namespace flamefleet
