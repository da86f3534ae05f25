// SPDX-License-Identifier: Apache-2.0
// BoundedQueue: hands values from producer threads to consumer threads.
//
// Thread: any. Bounds: at most `capacity` values; what happens when it is full is the caller's
// choice: TryPush refuses, PushDroppingOldest returns the value that had to go, so that the loss
// can be counted.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/status.h"

namespace flamefleet {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) { FF_CHECK(capacity > 0); }

  // False, and `value` is untouched, when the queue is full.
  bool TryPush(T& value) {
    {
      const std::lock_guard lock(mutex_);
      if (values_.size() >= capacity_) return false;
      values_.push_back(std::move(value));
    }
    changed_.notify_one();
    return true;
  }

  // Always takes `value`; returns the oldest one when it had to make room.
  std::optional<T> PushDroppingOldest(T value) {
    std::optional<T> dropped;
    {
      const std::lock_guard lock(mutex_);
      if (values_.size() >= capacity_) {
        dropped = std::move(values_.front());
        values_.pop_front();
      }
      values_.push_back(std::move(value));
    }
    changed_.notify_one();
    return dropped;
  }

  // The oldest value; nothing when stop is requested or the timeout passes first.
  std::optional<T> Pop(const std::stop_token& stop, std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, stop, timeout, [this] { return !values_.empty(); })) {
      return std::nullopt;
    }
    return TakeFront();
  }

  // The oldest value if there is one.
  std::optional<T> TryPop() {
    const std::lock_guard lock(mutex_);
    if (values_.empty()) return std::nullopt;
    return TakeFront();
  }

  size_t Size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  std::optional<T> TakeFront() {
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    return value;
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<T> values_;  // guarded by mutex_
};

}  // namespace flamefleet
