// SPDX-License-Identifier: Apache-2.0
#include "agent/push/push_queue.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace flamefleet::agent {

bool PushQueue::IsFull() const {
  return bytes_ > max_bytes_ || profiles_ > max_profiles_;
}

void PushQueue::Forget(const QueuedPush& push) {
  FF_CHECK(profiles_ > 0 && bytes_ >= push.body.size());
  --profiles_;
  bytes_ -= push.body.size();
}

std::vector<QueuedPush> PushQueue::SetBackends(const std::set<std::string>& names) {
  const MutexLock lock(&mutex_);
  std::vector<QueuedPush> orphans;
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    if (names.contains(lane->first)) {
      ++lane;
      continue;
    }
    for (QueuedPush& push : lane->second.waiting) {
      Forget(push);
      orphans.push_back(std::move(push));
    }
    lane = lanes_.erase(lane);
  }
  for (const std::string& name : names)
    lanes_.try_emplace(name);
  changed_.SignalAll();
  return orphans;
}

PushQueue::Refused PushQueue::Add(QueuedPush push) {
  const MutexLock lock(&mutex_);
  const auto lane = lanes_.find(push.backend);
  if (lane == lanes_.end()) return {.unknown_backend = std::move(push)};
  push.sequence = next_sequence_++;
  ++profiles_;
  bytes_ += push.body.size();
  lane->second.waiting.push_back(std::move(push));
  Refused refused;
  while (IsFull()) {
    std::optional<QueuedPush> oldest = EvictOldest();
    if (!oldest) break;  // all of it is being sent
    refused.full.push_back(*std::move(oldest));
  }
  changed_.Signal();
  return refused;
}

// The first of a lane that is not held back; of several lanes the one that came first.
std::optional<QueuedPush> PushQueue::TakeReady(Clock::time_point now) {
  Lane* chosen = nullptr;
  for (auto& [name, lane] : lanes_) {
    if (lane.waiting.empty() || lane.not_before > now) continue;
    if (chosen == nullptr || lane.waiting.front().sequence < chosen->waiting.front().sequence) {
      chosen = &lane;
    }
  }
  if (chosen == nullptr) return std::nullopt;
  std::optional<QueuedPush> push(std::move(chosen->waiting.front()));
  chosen->waiting.pop_front();
  return push;
}

// The oldest that waits anywhere. A retried one is at the end of its lane, behind younger ones.
std::optional<QueuedPush> PushQueue::EvictOldest() {
  const auto older = [](const QueuedPush& a, const QueuedPush& b) {
    return a.sequence < b.sequence;
  };
  Lane* chosen = nullptr;
  std::deque<QueuedPush>::iterator oldest;
  for (auto& [name, lane] : lanes_) {
    const auto first = std::min_element(lane.waiting.begin(), lane.waiting.end(), older);
    if (first == lane.waiting.end()) continue;
    if (chosen != nullptr && !older(*first, *oldest)) continue;
    chosen = &lane;
    oldest = first;
  }
  if (chosen == nullptr) return std::nullopt;
  std::optional<QueuedPush> push(std::move(*oldest));
  chosen->waiting.erase(oldest);
  Forget(*push);
  return push;
}

PushQueue::Clock::time_point PushQueue::NextReady() const {
  auto next = Clock::time_point::max();
  for (const auto& [name, lane] : lanes_) {
    if (!lane.waiting.empty()) next = std::min(next, lane.not_before);
  }
  return next;
}

std::optional<QueuedPush> PushQueue::Take(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(&mutex_);
    changed_.SignalAll();
  });
  const MutexLock lock(&mutex_);
  while (!stop.stop_requested()) {
    const auto now = Clock::now();
    if (std::optional<QueuedPush> push = TakeReady(now)) return push;
    const auto next = NextReady();
    if (next == Clock::time_point::max()) {
      changed_.Wait(&mutex_);
    } else {
      WaitFor(changed_, mutex_, next - now);
    }
  }
  return std::nullopt;
}

void PushQueue::Done(const QueuedPush& push) {
  const MutexLock lock(&mutex_);
  Forget(push);
  changed_.SignalAll();
}

std::optional<QueuedPush> PushQueue::Retry(QueuedPush push, Clock::time_point not_before) {
  const MutexLock lock(&mutex_);
  const auto lane = lanes_.find(push.backend);
  if (lane == lanes_.end()) {
    Forget(push);
    return push;
  }
  lane->second.not_before = std::max(lane->second.not_before, not_before);
  lane->second.waiting.push_back(std::move(push));
  changed_.SignalAll();
  return std::nullopt;
}

bool PushQueue::AwaitEmpty(std::chrono::nanoseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const MutexLock lock(&mutex_);
  while (profiles_ > 0) {
    const auto left = deadline - Clock::now();
    if (left <= left.zero()) return false;
    WaitFor(changed_, mutex_, left);
  }
  return true;
}

std::vector<QueuedPush> PushQueue::Clear() {
  const MutexLock lock(&mutex_);
  std::vector<QueuedPush> all;
  for (auto& [name, lane] : lanes_) {
    for (QueuedPush& push : lane.waiting) {
      Forget(push);
      all.push_back(std::move(push));
    }
    lane.waiting.clear();
  }
  changed_.SignalAll();
  return all;
}

size_t PushQueue::Profiles() const {
  const MutexLock lock(&mutex_);
  return profiles_;
}

size_t PushQueue::Bytes() const {
  const MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace flamefleet::agent
