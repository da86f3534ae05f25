// SPDX-License-Identifier: Apache-2.0
// Pusher: keeps finished profiles in the spool and sends them to their backends by the Pyroscope
// push API. Nothing else in the agent opens a connection to a backend.
//
//   Push -> pending (memory) -> ff-spool: one transaction for all that came -> lanes -> backends
//
// What a backend does not take is sent again with the same labels and time (see outcome.h).
// At any time: produced + recovered + split = delivered + dropped + waiting, in the metrics.
//
// Thread: all methods from any. It owns "ff-spool"; each lane has its senders, which call the
// observer.
// Bounds: kMaxPendingBytes wait for the spool's disk, the oldest go; then those of spool and lanes;
//         kMaxSpare buffers of at most kMaxKeptBuffer.
// Errors: SetBackends: kInvalidArgument names the backend whose endpoint or certificates cannot be
//         used; its profiles wait, the others are in force.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/push/lane.h"
#include "agent/push/ledger.h"
#include "agent/spool/spool.h"
#include "agent/types.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/progress.h"

namespace flamefleet::agent {

constexpr int64_t kMaxPendingBytes = 16 << 20;
// Profiles of a node's window; they hold 2 MiB at most.
constexpr size_t kMaxSpare = 64;

class Pusher {
 public:
  // `spool` null: one in memory. `metrics` and `observer` (may be null) must outlive it.
  Pusher(const LaneOptions& options, std::unique_ptr<Spool> spool, Metrics* metrics,
         DeliveryObserver* observer);
  // Stops. What still waits stays in a spool on disk, and is counted as dropped, AgentStopped, from
  // one in memory.
  ~Pusher();
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;

  // Replaces the backends. What waits for one that is gone is dropped.
  Status SetBackends(const std::vector<BackendConfig>& backends);

  // Does not wait for the disk.
  void Push(const FinishedProfile& profile);

  // Waits until everything is delivered or dropped; false when the time is over.
  bool Drain(std::chrono::nanoseconds timeout);

  // What waits, by backend; only of those for which something waits longer than fresh_ns: what is
  // on its way is no backlog.
  std::map<std::string, Backlog> Backlogs();

  // Names the stage that is stuck: spool, push.
  Status CheckProgress() const;

 private:
  using Lanes = std::vector<std::shared_ptr<Lane>>;

  void StoreUntilStopped(const std::stop_token& stop);
  void AwaitPending(const std::stop_token& stop, std::vector<SpooledProfile>* batch);
  SpooledProfile TakeSpare();
  void KeepSpare(std::vector<SpooledProfile>& batch) FF_REQUIRES(mutex_);
  bool Store(std::vector<SpooledProfile>& batch);
  void StartOver(const Status& why);
  void ForEachLane(Lanes& lanes, void (Lane::*action)());
  void RemoveBackend(const std::string& name);
  void Settled();

  const LaneOptions options_;
  const Clock& clock_;
  DeliveryLedger ledger_;
  const std::unique_ptr<Spool> spool_;
  Progress spool_progress_{"spool"};
  Progress push_progress_{"push"};

  Mutex mutex_;
  CondVar changed_;
  std::vector<SpooledProfile> pending_ FF_GUARDED_BY(mutex_);
  std::vector<SpooledProfile> spare_ FF_GUARDED_BY(mutex_);  // for the memory of their strings
  int64_t pending_bytes_ FF_GUARDED_BY(mutex_) = 0;
  int64_t storing_ FF_GUARDED_BY(mutex_) = 0;  // profiles on their way from pending to spool
  bool spool_failing_ = false;                 // of ff-spool
  std::map<std::string, std::shared_ptr<Lane>> lanes_ FF_GUARDED_BY(mutex_);

  Mutex show_mutex_;  // the gauges show what is there after the last change

  std::jthread writer_;  // last: joined first
};

}  // namespace flamefleet::agent
