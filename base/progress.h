// SPDX-License-Identifier: Apache-2.0
// Progress: whether the threads of one stage get on with their work: a watchdog asks.
//
// A thread says what it begins, and how long that may take at most, by a Work that lives as long.
// One that waits for something to do is never late.
//
// Thread: any, lock-free. Bounds: kMaxThreads at work at a time; further ones are not watched.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/status.h"

namespace flamefleet {

class Progress {
 public:
  static constexpr size_t kMaxThreads = 64;

  explicit Progress(std::string stage, const Clock& clock = SystemClock())
      : stage_(std::move(stage)), clock_(clock) {}

  class [[nodiscard]] Work {
   public:
    Work(Progress& progress, std::chrono::nanoseconds limit) : slot_(progress.Begin(limit)) {}
    ~Work() {
      if (slot_ != nullptr) *slot_ = 0;
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    std::atomic<int64_t>* slot_;  // null: not watched
  };

  // Names the stage when a thread of it is late.
  Status Check() const {
    const int64_t now_ns = clock_.MonotonicNanos();
    for (const std::atomic<int64_t>& slot : deadlines_) {
      const int64_t deadline_ns = slot;
      if (deadline_ns != 0 && deadline_ns < now_ns)
        return DeadlineExceededError("stage " + stage_ + " makes no progress, it is late by " +
                                     std::to_string((now_ns - deadline_ns) / kNanosPerSecond) +
                                     " s; a restart is due");
    }
    return OkStatus();
  }

 private:
  std::atomic<int64_t>* Begin(std::chrono::nanoseconds limit) {
    const int64_t deadline_ns = clock_.MonotonicNanos() + limit.count();
    for (std::atomic<int64_t>& slot : deadlines_) {
      int64_t free = 0;
      if (slot.compare_exchange_strong(free, deadline_ns)) return &slot;
    }
    return nullptr;
  }

  const std::string stage_;
  const Clock& clock_;
  std::array<std::atomic<int64_t>, kMaxThreads> deadlines_{};  // monotonic; 0: free
};

}  // namespace flamefleet
