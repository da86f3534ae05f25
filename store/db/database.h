// SPDX-License-Identifier: Apache-2.0
// Database: all stored profiles, one Day per UTC day of profile time.
//
// One thread writes. What arrives while it syncs becomes one transaction of the next round (group
// commit), so the number of syncs does not grow with the number of clients.
//
// Between these rounds it packs what has been stored for a while, a little at a time.
//
// Thread: any; owns the thread "ff-store-write". Append blocks until the profiles are on disk.
// Bounds: kMaxPendingBytes wait to be written. A day is removed when all of it is older than the
//         retention (not within an hour after the clock jumped ahead: ClockTrust), and the oldest
//         day when all are larger than max_bytes together; of a single day that is too large the
//         oldest profiles are deleted.
// Errors: a damaged day is renamed to *.corrupt-<time>, logged and counted; the others are served.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/status.h"
#include "store/db/clock_trust.h"
#include "store/db/day.h"

namespace flamefleet::store {

constexpr size_t kMaxPendingBytes = 128 << 20;

struct DatabaseOptions {
  std::string directory;  // created when it does not exist
  int64_t retention_ns = 72 * 3600 * kNanosPerSecond;
  int64_t max_bytes = int64_t{10} << 30;
  std::string tenant;  // of its gauges; empty: it is the only one
};

class Database {
 public:
  // Opens all days of the directory. kAlreadyExists: another process has it open.
  static Result<std::unique_ptr<Database>> Open(const DatabaseOptions& options, const Clock* clock,
                                                Metrics* metrics);
  // Writes what was accepted, then closes.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Stores the profiles; each on disk when the result is OK. A profile with the series, time and
  // bytes of a stored one is stored already. After an error some may be stored: send them again.
  // kResourceExhausted: the disk is full; kUnavailable: too much waits already;
  // kFailedPrecondition: too many series.
  Status Append(const std::vector<NewProfile>& profiles);

  // Calls `visitor` for each part of what matches, by day, then series.
  Status Select(const Selector& selector, const TimeRange& range, const PartVisitor& visitor);
  // These end with kDeadlineExceeded after kMaxSelectionNs.
  //
  // The label sets that have a matching profile in the range; again for each day.
  Status SelectSeries(const Selector& selector, const TimeRange& range,
                      const SeriesVisitor& visitor);
  // As Day's: the totals of one sample type of each profile; those of the newest profile of each
  // series and day.
  Status SelectTotals(const Selector& selector, const TimeRange& range,
                      const TotalVisitor& visitor);
  Status SelectNewestTotals(const Selector& selector, const TimeRange& range,
                            const TotalVisitor& visitor);

  int64_t retention_ns() const { return options_.retention_ns; }

 private:
  struct Request;
  struct Counters;
  using Days = std::map<int64_t, std::shared_ptr<Day>>;

  Database(const DatabaseOptions& options, const Clock* clock, Metrics* metrics);
  Status OpenExisting();
  Days DaysIn(const TimeRange& range) const;
  // Runs `select` on each day of the range; a damaged day is reported to the writer and left out.
  Status ForEachDay(const TimeRange& range, const std::function<Status(const Day&)>& select);

  // Of the writer thread.
  void WriteLoop();
  void WriteBatch(const std::vector<Request*>& batch);
  void WriteDay(int64_t number, const std::vector<Request*>& owners,
                const std::vector<const NewProfile*>& profiles);
  Result<std::shared_ptr<Day>> OpenForWriting(int64_t number);
  // Packs a little of what there is to pack.
  void PackSome();
  void HouseKeeping();
  void RemoveOldDays(int64_t monotonic_ns);
  void FindPackable();
  int64_t MeasureDays();
  void RemoveDay(int64_t number, CounterMetric* counter);
  void SetAside(const std::shared_ptr<Day>& day, const Status& error);

  const DatabaseOptions options_;
  const Clock* const clock_;
  UniqueFd lock_file_;
  std::unique_ptr<Counters> counters_;
  // Of the writer thread.
  int64_t next_housekeeping_ns_ = 0;  // monotonic
  ClockTrust clock_trust_;
  // What there is to pack, as of the last housekeeping.
  std::deque<std::pair<std::shared_ptr<Day>, Day::SeriesHour>> packable_;
  bool failing_ = false;  // the last transaction failed: logged when it changes

  mutable Mutex mutex_;
  CondVar work_;  // there are requests, or stop
  CondVar done_;  // a batch is finished
  Days days_ FF_GUARDED_BY(mutex_);
  std::deque<Request*> queue_ FF_GUARDED_BY(mutex_);
  size_t pending_bytes_ FF_GUARDED_BY(mutex_) = 0;
  std::vector<std::pair<std::shared_ptr<Day>, Status>> damaged_ FF_GUARDED_BY(mutex_);
  bool stopping_ FF_GUARDED_BY(mutex_) = false;

  std::jthread writer_;  // last: ends first
};

}  // namespace flamefleet::store
