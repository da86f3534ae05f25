// SPDX-License-Identifier: Apache-2.0
// PushQueue: the encoded profiles that wait for their backends, in memory, oldest first.
//
// Each backend has a lane of its own, so that one that does not answer holds up nobody else; the
// bounds are common to all lanes.
//
// Thread: any; internally locked.
// Bounds: kMaxQueuedBytes and kMaxQueuedProfiles, those being sent included; over one the oldest
//         waiting profile of all lanes is handed back to be counted.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/types.h"
#include "base/mutex.h"

namespace flamefleet::agent {

constexpr size_t kMaxQueuedBytes = 16 << 20;
constexpr size_t kMaxQueuedProfiles = 4096;

// One profile on its way. A retry sends the same bytes: labels and time repeat exactly.
struct QueuedPush {
  CollectionKey collection;
  std::string backend;
  std::string body;  // PushRequest
  uint64_t sequence = 0;
  int server_errors = 0;
};

class PushQueue {
 public:
  using Clock = std::chrono::steady_clock;

  PushQueue(size_t max_bytes, size_t max_profiles)
      : max_bytes_(max_bytes), max_profiles_(max_profiles) {}

  // Backends that are known from now on; the profiles of others are handed back.
  std::vector<QueuedPush> SetBackends(const std::set<std::string>& names);

  // Takes the profile unless its backend is unknown; hands back what has no place: the oldest
  // waiting ones, or the profile itself.
  struct Refused {
    std::vector<QueuedPush> full;
    std::optional<QueuedPush> unknown_backend;
  };
  Refused Add(QueuedPush push);

  // The oldest profile of a backend that is not held back; nothing when stop is requested. It stays
  // counted until Done or Retry.
  std::optional<QueuedPush> Take(const std::stop_token& stop);
  void Done(const QueuedPush& push);
  // Puts it at the end of its lane, which is held back until `not_before`. Handed back if the
  // backend is gone.
  std::optional<QueuedPush> Retry(QueuedPush push, Clock::time_point not_before);

  // Waits until nothing is queued or being sent; false when the time is over.
  bool AwaitEmpty(std::chrono::nanoseconds timeout);
  // Takes out all that waits.
  std::vector<QueuedPush> Clear();

  size_t Profiles() const;
  size_t Bytes() const;

 private:
  struct Lane {
    std::deque<QueuedPush> waiting;
    Clock::time_point not_before;
  };

  bool IsFull() const FF_REQUIRES(mutex_);
  std::optional<QueuedPush> TakeReady(Clock::time_point now) FF_REQUIRES(mutex_);
  std::optional<QueuedPush> EvictOldest() FF_REQUIRES(mutex_);
  Clock::time_point NextReady() const FF_REQUIRES(mutex_);
  void Forget(const QueuedPush& push) FF_REQUIRES(mutex_);

  const size_t max_bytes_;
  const size_t max_profiles_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Lane> lanes_ FF_GUARDED_BY(mutex_);
  size_t profiles_ FF_GUARDED_BY(mutex_) = 0;  // waiting and being sent
  size_t bytes_ FF_GUARDED_BY(mutex_) = 0;
  uint64_t next_sequence_ FF_GUARDED_BY(mutex_) = 0;
};

}  // namespace flamefleet::agent
