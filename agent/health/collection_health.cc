// SPDX-License-Identifier: Apache-2.0
#include "agent/health/collection_health.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/reasons.h"
#include "base/utf8.h"

namespace flamefleet::agent {

void CollectionHealthBook::Changed() {
  has_change_ = true;
  changed_.SignalAll();
}

void CollectionHealthBook::SetCollections(const std::vector<CollectionSpec>& specs) {
  const MutexLock lock(&mutex_);
  std::map<CollectionKey, Entry> next;
  for (const CollectionSpec& spec : specs) {
    auto known = entries_.extract(spec.key);
    Entry& entry = next[spec.key];
    if (!known.empty()) entry = std::move(known.mapped());
    if (known.empty() || !entry.spec.can_run) entry.in_force_since_ns = clock_.WallNanos();
    entry.status.key = spec.key;
    entry.spec = spec;
  }
  entries_ = std::move(next);
  Changed();
}

void CollectionHealthBook::SetSamplingUnavailable(const std::string& message) {
  const MutexLock lock(&mutex_);
  std::string cut = CutUtf8(message, kMaxMessageBytes);
  if (cut == sampling_unavailable_) return;
  sampling_unavailable_ = std::move(cut);
  Changed();
}

void CollectionHealthBook::Fail(const CollectionKey& key, std::string_view reason,
                                const std::string& message) {
  const MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;  // no longer wanted
  CollectionStatus& status = found->second.status;
  const bool news = status.state != CollectionState::kFailing || status.reason != reason;
  if (status.state != CollectionState::kFailing) status.failing_since_ns = clock_.WallNanos();
  status.state = CollectionState::kFailing;
  status.reason = reason;
  status.message = CutUtf8(message, kMaxMessageBytes);
  if (news) Changed();
}

void CollectionHealthBook::OnCollectFailed(const CollectionKey& key, std::string_view reason,
                                           const std::string& message) {
  Fail(key, reason, message);
}

void CollectionHealthBook::OnNotDelivered(const CollectionKey& key, std::string_view reason,
                                          const std::string& message) {
  Fail(key, reason, message);
}

void CollectionHealthBook::MarkGood(Entry* entry) {
  entry->last_good_ns = clock_.WallNanos();
  const bool was_failing = entry->status.state == CollectionState::kFailing;
  entry->status.state = CollectionState::kWaiting;
  entry->status.reason.clear();
  entry->status.message.clear();
  entry->status.failing_since_ns = 0;
  if (was_failing) Changed();
}

void CollectionHealthBook::OnNothingToDeliver(const CollectionKey& key) {
  const MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end()) MarkGood(&found->second);
}

void CollectionHealthBook::CountStacks(const FinishedProfile& profile) {
  const MutexLock lock(&mutex_);
  const auto found = entries_.find(profile.collection);
  if (found == entries_.end()) return;
  StackEnds& sums = found->second.status.stack_ends;
  std::ranges::transform(sums, profile.stack_ends, sums.begin(), std::plus<>());
}

void CollectionHealthBook::OnDelivered(const CollectionKey& key) {
  const MutexLock lock(&mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  CollectionStatus& status = found->second.status;
  MarkGood(&found->second);
  status.last_delivered_ns = found->second.last_good_ns;
  if (++status.profiles_delivered == 1) Changed();
}

CollectionStatus CollectionHealthBook::StatusOf(const Entry& entry, int64_t now) const {
  CollectionStatus status = entry.status;
  if (entry.spec.ebpf && !sampling_unavailable_.empty()) {
    status.state = CollectionState::kFailing;
    status.reason = reasons::kSamplingUnavailable;
    status.message = sampling_unavailable_;
    status.failing_since_ns = entry.in_force_since_ns;
    return status;
  }
  if (status.state == CollectionState::kFailing) return status;
  const int64_t fresh = kFreshWindows * entry.spec.window.count();
  if (status.last_delivered_ns != 0 && now - status.last_delivered_ns <= fresh) {
    status.state = CollectionState::kDelivering;
    return status;
  }
  // Sampling says nothing about a container that used no CPU; a pull says that it found nothing.
  const bool silent_long = now - entry.in_force_since_ns > fresh;
  const bool works = entry.spec.ebpf ? silent_long && entry.spec.can_run : entry.last_good_ns != 0;
  status.state = works ? CollectionState::kIdle : CollectionState::kWaiting;
  return status;
}

std::vector<CollectionStatus> CollectionHealthBook::Snapshot() const {
  const MutexLock lock(&mutex_);
  const int64_t now = clock_.WallNanos();
  std::vector<CollectionStatus> all;
  all.reserve(entries_.size());
  for (const auto& [key, entry] : entries_)
    all.push_back(StatusOf(entry, now));
  return all;
}

bool CollectionHealthBook::AwaitChange(const std::stop_token& stop,
                                       std::chrono::nanoseconds timeout) {
  const std::stop_callback wake(stop, [this] {
    const MutexLock lock(&mutex_);
    changed_.SignalAll();
  });
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(&mutex_);
  while (!has_change_ && !stop.stop_requested()) {
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left <= left.zero()) break;
    WaitFor(changed_, mutex_, left);
  }
  return std::exchange(has_change_, false);
}

}  // namespace flamefleet::agent
