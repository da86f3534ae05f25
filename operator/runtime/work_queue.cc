// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/work_queue.h"

#include <algorithm>

namespace flamefleet {
namespace {

// How often Take looks whether stop was requested when nothing is due.
constexpr std::chrono::milliseconds kLongestWait{200};

const std::vector<double> kDurationBounds = {0.001, 0.01, 0.1, 0.5, 1, 5, 10, 60};

double Seconds(int64_t nanos) {
  return static_cast<double>(nanos) / 1e9;
}

}  // namespace

WorkQueue::WorkQueue(const Clock& clock, Metrics& metrics, const std::string& name)
    : clock_(clock),
      depth_(metrics.Gauge("workqueue_depth", "Keys that wait.", {{"name", name}})),
      adds_(metrics.Counter("workqueue_adds_total", "Keys added that did not wait already.",
                            {{"name", name}})),
      retries_(metrics.Counter("workqueue_retries_total", "Keys added again after a failure.",
                               {{"name", name}})),
      queue_duration_(metrics.Histogram("workqueue_queue_duration_seconds",
                                        "Time from when a key is due to when it is taken.",
                                        kDurationBounds, {{"name", name}})),
      work_duration_(metrics.Histogram("workqueue_work_duration_seconds",
                                       "Time that one key takes.", kDurationBounds,
                                       {{"name", name}})),
      unfinished_(metrics.Gauge("workqueue_unfinished_work_seconds",
                                "Sum of the times that the keys in work have taken so far.",
                                {{"name", name}})),
      longest_(metrics.Gauge("workqueue_longest_running_processor_seconds",
                             "Time that the longest of the keys in work has taken so far.",
                             {{"name", name}})) {}

void WorkQueue::Add(const std::string& key, Duration delay) {
  MutexLock lock(&mutex_);
  AddLocked(key, clock_.MonotonicNanos() + delay.count());
}

void WorkQueue::Open() {
  MutexLock lock(&mutex_);
  open_ = true;
}

void WorkQueue::Close() {
  MutexLock lock(&mutex_);
  open_ = false;
  schedule_.clear();
  due_of_.clear();
  again_.clear();
  failures_.clear();
  depth_.Set(0);
}

void WorkQueue::AddLocked(const std::string& key, int64_t due_ns) {
  if (!open_) return;
  if (processing_.contains(key)) {
    const auto [again, added] = again_.try_emplace(key, due_ns);
    again->second = std::min(again->second, due_ns);
    if (added) adds_.Increment();
    return;
  }
  const auto [waiting, added] = due_of_.try_emplace(key, due_ns);
  if (added) {
    adds_.Increment();
  } else if (due_ns < waiting->second) {
    schedule_.erase({waiting->second, key});
    waiting->second = due_ns;
  } else {
    return;
  }
  schedule_.insert({due_ns, key});
  depth_.Set(static_cast<double>(schedule_.size()));
  changed_.Signal();
}

void WorkQueue::AddAfterFailure(const std::string& key) {
  MutexLock lock(&mutex_);
  const int failures = failures_[key]++;
  constexpr int kMaxDoublings = 30;  // far over kMaxRetry, far under an overflow
  const Duration delay = std::min<Duration>(
      kMaxRetry, kFirstRetry * (int64_t{1} << std::min(failures, kMaxDoublings)));
  retries_.Increment();
  AddLocked(key, clock_.MonotonicNanos() + delay.count());
}

void WorkQueue::Forget(const std::string& key) {
  MutexLock lock(&mutex_);
  failures_.erase(key);
}

std::optional<std::string> WorkQueue::TakeLocked() {
  const int64_t now_ns = clock_.MonotonicNanos();
  if (schedule_.empty() || schedule_.begin()->first > now_ns) return std::nullopt;
  auto [due_ns, key] = *schedule_.begin();
  schedule_.erase(schedule_.begin());
  due_of_.erase(key);
  processing_[key] = now_ns;
  depth_.Set(static_cast<double>(schedule_.size()));
  queue_duration_.Observe(Seconds(now_ns - due_ns));
  return key;
}

std::optional<std::string> WorkQueue::TryTake() {
  MutexLock lock(&mutex_);
  return TakeLocked();
}

std::optional<std::string> WorkQueue::Take(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { changed_.SignalAll(); });
  MutexLock lock(&mutex_);
  while (!stop.stop_requested()) {
    if (auto key = TakeLocked()) return key;
    Duration wait = kLongestWait;
    if (!schedule_.empty()) {
      const int64_t until_due = schedule_.begin()->first - clock_.MonotonicNanos();
      wait = std::min(wait, Duration(std::max<int64_t>(until_due, 0)));
    }
    WaitFor(changed_, mutex_, wait);
  }
  return std::nullopt;
}

void WorkQueue::Done(const std::string& key) {
  MutexLock lock(&mutex_);
  const auto processed = processing_.find(key);
  if (processed == processing_.end()) return;
  work_duration_.Observe(Seconds(clock_.MonotonicNanos() - processed->second));
  processing_.erase(processed);
  if (const auto again = again_.find(key); again != again_.end()) {
    const int64_t due_ns = again->second;
    again_.erase(again);
    due_of_[key] = due_ns;
    schedule_.insert({due_ns, key});
    depth_.Set(static_cast<double>(schedule_.size()));
    changed_.Signal();
  }
}

void WorkQueue::UpdateMetrics() {
  MutexLock lock(&mutex_);
  double sum = 0;
  double longest = 0;
  for (const auto& [key, since_ns] : processing_) {
    const double seconds = Seconds(clock_.MonotonicNanos() - since_ns);
    sum += seconds;
    longest = std::max(longest, seconds);
  }
  unfinished_.Set(sum);
  longest_.Set(longest);
}

int WorkQueue::FailuresOf(const std::string& key) const {
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

std::vector<WorkQueue::Item> WorkQueue::Look(size_t limit) const {
  MutexLock lock(&mutex_);
  const int64_t now_ns = clock_.MonotonicNanos();
  std::vector<Item> items;
  for (const auto& [key, since_ns] : processing_) {
    if (items.size() == limit) return items;
    items.push_back({key, true, Duration(since_ns - now_ns), FailuresOf(key)});
  }
  for (const auto& [due_ns, key] : schedule_) {
    if (items.size() == limit) return items;
    items.push_back({key, false, Duration(due_ns - now_ns), FailuresOf(key)});
  }
  return items;
}

}  // namespace flamefleet
