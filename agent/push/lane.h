// SPDX-License-Identifier: Apache-2.0
// Lane: the way to one backend: its senders, what it may be sent and when, and whether it is in
// trouble. Nothing of it waits for another backend.
//
// Fresh profiles go first; what waited longer (the backlog) follows, the oldest first and at a
// bounded rate, so that a backend that comes back is not flooded.
//
// Thread: any; internally locked. It owns kSenders threads, "ff-push-N". Stop and destruction end a
//         push that is under way; its profile stays in the spool.
// Bounds: one profile in memory per sender, and between two of them kMaxKeptBuffer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/push/ledger.h"
#include "agent/push/outcome.h"
#include "agent/push/pacing.h"
#include "agent/push/push_client.h"
#include "agent/spool/spool.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/progress.h"

namespace flamefleet::agent {

// What a buffer for bodies may keep for the next one: ten typical profiles.
constexpr size_t kMaxKeptBuffer = 32 << 10;

struct LaneOptions {
  std::chrono::milliseconds first_backoff{500};
  std::chrono::milliseconds max_backoff{30'000};
  int64_t fresh_ns = 60 * kNanosPerSecond;  // older ones are backlog
  int64_t backlog_per_second = 32;          // profiles
  std::chrono::milliseconds push_timeout = kPushTimeout;
};

class Lane {
 public:
  // A push blocks for about half a second on Pyroscope.
  static constexpr int kSenders = 8;

  // All but `options` outlive it. `settled` is called after a profile has left the spool.
  Lane(std::string name, const LaneOptions& options, Spool& spool, DeliveryLedger& ledger,
       Progress& progress, const Clock& clock, std::function<void()> settled);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // What the destructor does, before: ends a push that is under way.
  void Stop();

  // Takes new settings into force, at once. kInvalidArgument: the endpoint or a certificate cannot
  // be used; profiles wait until there are others.
  Status Configure(const BackendConfig& config);
  // There is more to send.
  void Wake();

  // Drops what is older than the backend takes.
  void Sweep();

  struct Trouble {
    std::string_view reason;  // of base/reasons.h
    std::string message;
  };
  // Why nothing gets through now; null: it does, as far as is known. It does not wait for the disk.
  std::shared_ptr<const Trouble> trouble() const;

 private:
  struct Job {
    SpooledProfile profile;
    std::shared_ptr<const PushClient> client;
    SteadyTime begun;
  };

  void SendUntilStopped(const std::stop_token& stop);
  // False: stop was requested.
  bool NextJob(const std::stop_token& stop, Job* job);
  SteadyTime MayTake(SteadyTime now) const FF_REQUIRES(mutex_);
  Result<bool> Take(SteadyTime now, SteadyTime* next, SpooledProfile* profile) FF_REQUIRES(mutex_);
  void Send(Job& job, const std::stop_token& stop);
  void Settle(const Job& job, const Outcome& outcome);
  void Split(const SpooledProfile& profile, const Outcome& outcome);
  void NoteAnswer(const Job& job, const Outcome& outcome);
  void SetTrouble(std::shared_ptr<const Trouble> trouble);
  void Drop(const SpooledProfile& profile, std::string_view reason, const std::string& message);
  void Release(const SpooledProfile& profile);
  // Leaves a spool alone for a while whose file cannot be changed.
  void NoteSpool(const Status& status);

  const std::string name_;
  const LaneOptions options_;
  Spool& spool_;
  DeliveryLedger& ledger_;
  Progress& progress_;
  const Clock& clock_;
  const std::function<void()> settled_;

  mutable Mutex mutex_;
  CondVar changed_;
  BackendConfig config_ FF_GUARDED_BY(mutex_);
  std::shared_ptr<const PushClient> client_ FF_GUARDED_BY(mutex_);  // null: held
  Circuit circuit_ FF_GUARDED_BY(mutex_);
  TokenBucket bytes_ FF_GUARDED_BY(mutex_);
  TokenBucket backlog_ FF_GUARDED_BY(mutex_);
  SteadyTime spool_rest_ FF_GUARDED_BY(mutex_){};  // until then nothing is taken
  int under_way_ FF_GUARDED_BY(mutex_) = 0;
  uint64_t wakes_ FF_GUARDED_BY(mutex_) = 0;  // counts Wake, so that none is missed

  mutable Mutex trouble_mutex_;  // innermost
  std::shared_ptr<const Trouble> trouble_ FF_GUARDED_BY(trouble_mutex_);

  std::vector<std::jthread> senders_;  // last: joined first
};

}  // namespace flamefleet::agent
