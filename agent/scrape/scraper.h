// SPDX-License-Identifier: Apache-2.0
// Scraper: pulls the pprof endpoints of pods on this node, each at its own interval.
//
// The first scrape of a job is spread over its interval; the one that is due longest goes first. No
// credential of ours is sent to a pod, and a redirect is followed on the same host only. A job that
// fails says so to the observer and is tried again at its next turn, or after RestAfter; others go
// on. The profiles of a job reach the sink in order.
//
// A CPU profile is asked for nearly as long as its interval, so those have threads of their own: as
// many as there are such jobs, since they do nothing but wait.
//
// Thread: SetJobs from one thread. It owns up to kMaxScrapes + kMaxCpuScrapes threads,
//         "ff-scrape-N" and "ff-cpu-N", which call the sink and the observer.
// Bounds: kMaxScrapes at once, and kMaxCpuScrapes of CPU; of the latter kMaxCpuBodies are read at a
//         time; one profile is decoded at a time, so that bodies that unpack to the limit do not
//         add up; ScrapeLimits. A turn that found no free thread is counted as missed.
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
#include "agent/scrape/scrape_limits.h"
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
  static constexpr size_t kMaxCpuScrapes = 128;  // a node has 110 pods unless told otherwise
  static constexpr size_t kMaxCpuBodies = 8;
  using Sink = std::function<void(const FinishedProfile&)>;

  // All must outlive it.
  Scraper(const Clock& clock, Metrics* metrics, ScrapeObserver* observer, Sink sink,
          const ScrapeLimits& limits = {});
  ~Scraper();
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;

  // Replaces the jobs. A job whose endpoint stays the same keeps its turn and its past, whatever
  // else of it changed; a shorter interval brings the turn forward. What a removed job is just
  // reading is thrown away.
  void SetJobs(const std::vector<ScrapeJob>& jobs);

  // An error when the stage is stuck.
  Status CheckProgress() const { return progress_.Check(); }

 private:
  using Time = std::chrono::steady_clock::time_point;

  // What is known of a job between its scrapes; owned by the one that runs it.
  struct Past {
    explicit Past(DeltaRoom* room) : delta(room) {}
    Delta delta;
    std::optional<Time> last_scrape;
    int64_t last_time_ns = 0;
    int failures = 0;  // in a row
    bool uses_fallback = false;
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

  // The threads that run the jobs of one kind.
  struct Lane {
    bool is_cpu;
    // Held by the one that waits for the next turn: it alone wakes for it.
    Mutex turn_mutex;
    std::vector<std::jthread> threads;
  };

  // As many threads as the lane has jobs, at most `max`. None ends before the Scraper.
  void StartThreads(Lane* lane, size_t jobs, size_t max);
  void ScrapeUntilStopped(Lane* lane, const std::stop_token& stop);
  std::optional<Turn> AwaitTurn(Lane* lane, const std::stop_token& stop);
  void Scrape(Turn turn, const std::stop_token& stop);
  std::optional<FinishedProfile> Read(const ScrapeJob& job, const FetchOptions& options, Past* past,
                                      const std::stop_token& stop, ScrapeFailure* failure);
  // Waits until few enough bodies of CPU profiles are read.
  Status AcquireBody(const std::stop_token& stop);
  void ReleaseBody();
  std::optional<FinishedProfile> Pull(const ScrapeJob& job, Past* past, const std::stop_token& stop,
                                      ScrapeFailure* failure);
  bool IsWanted(const Turn& turn);
  void Return(const Turn& turn, std::unique_ptr<Past> past, std::chrono::milliseconds rest);

  const Clock& clock_;
  ScrapeObserver* const observer_;
  const Sink sink_;
  const ScrapeLimits limits_;
  DeltaRoom room_{limits_.past};
  CounterMetric succeeded_;
  CounterMetric missed_;
  std::map<std::string_view, CounterMetric> failed_;  // by reason; constant after construction
  GaugeMetric jobs_gauge_;

  Progress progress_{"scrape"};

  Mutex decode_mutex_;

  Mutex mutex_;
  CondVar changed_;
  std::map<CollectionKey, Entry> entries_ FF_GUARDED_BY(mutex_);
  uint64_t next_generation_ FF_GUARDED_BY(mutex_) = 1;

  Mutex body_mutex_;
  CondVar body_released_;
  size_t cpu_bodies_ FF_GUARDED_BY(body_mutex_) = 0;

  // Last: their threads are joined first.
  Lane lane_{.is_cpu = false};
  Lane cpu_lane_{.is_cpu = true};
};

}  // namespace flamefleet::agent
