// SPDX-License-Identifier: Apache-2.0
// Scraper: pulls the pprof endpoints of pods on this node, each at its own interval.
//
// The first scrape of a job is spread over its interval; the one that is due longest goes first. No
// credential of ours is sent to a pod. A job that fails says so to the observer and is tried again
// at its next turn; others go on.
//
// Thread: SetJobs from one thread. It owns kMaxScrapes threads, "ff-scrape-N", which call the sink
//         and the observer.
// Bounds: kMaxScrapes at once; one profile is decoded at a time, so that bodies that unpack to the
//         limit do not add up.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "agent/scrape/delta.h"
#include "agent/scrape/scrape_job.h"
#include "agent/types.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/progress.h"

namespace flamefleet::agent {

class ScrapeObserver {
 public:
  ScrapeObserver() = default;
  ScrapeObserver(const ScrapeObserver&) = delete;
  ScrapeObserver& operator=(const ScrapeObserver&) = delete;
  virtual ~ScrapeObserver() = default;
  virtual void OnCollectFailed(const CollectionKey& key, std::string_view reason,
                               const std::string& message) = 0;
  // The scrape worked and there is nothing to send.
  virtual void OnNothingToDeliver(const CollectionKey& key) = 0;
};

class Scraper {
 public:
  static constexpr size_t kMaxScrapes = 8;
  using Sink = std::function<void(const FinishedProfile&)>;

  // All must outlive it.
  Scraper(const Clock& clock, Metrics* metrics, ScrapeObserver* observer, Sink sink);
  ~Scraper();
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;

  // Replaces the jobs. A job whose endpoint stays the same keeps its turn and its past, whatever
  // else of it changed. What a removed job is just reading is thrown away.
  void SetJobs(const std::vector<ScrapeJob>& jobs);

  // An error when the stage is stuck.
  Status CheckProgress() const { return progress_.Check(); }

 private:
  using Time = std::chrono::steady_clock::time_point;

  // What is known of a job between its scrapes; owned by the one that runs it.
  struct Past {
    Delta delta;
    std::optional<Time> last_scrape;
    int64_t last_time_ns = 0;
  };
  struct Entry {
    ScrapeJob job;
    Time due;
    std::unique_ptr<Past> past;  // null while a scrape runs
    uint64_t generation = 0;     // another number after the endpoint changed
  };
  struct Turn {
    ScrapeJob job;
    std::unique_ptr<Past> past;
    uint64_t generation = 0;
  };

  void ScrapeUntilStopped(const std::stop_token& stop);
  std::optional<Turn> AwaitTurn(const std::stop_token& stop);
  void Scrape(Turn turn, const std::stop_token& stop);
  std::optional<FinishedProfile> Pull(const ScrapeJob& job, Past* past, const std::stop_token& stop,
                                      ScrapeFailure* failure);
  bool Return(const Turn& turn, std::unique_ptr<Past> past);

  const Clock& clock_;
  ScrapeObserver* const observer_;
  const Sink sink_;
  CounterMetric succeeded_;
  std::map<std::string_view, CounterMetric> failed_;  // by reason; constant after construction
  GaugeMetric jobs_gauge_;

  Progress progress_{"scrape"};

  Mutex decode_mutex_;

  Mutex mutex_;
  CondVar changed_;
  std::map<CollectionKey, Entry> entries_ FF_GUARDED_BY(mutex_);
  uint64_t next_generation_ FF_GUARDED_BY(mutex_) = 1;

  std::vector<std::jthread> threads_;  // last: joined first
};

}  // namespace flamefleet::agent
