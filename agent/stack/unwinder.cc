// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/unwinder.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

// Each process comes once per window, and when it ends.
constexpr size_t kMaxWaiting = 4096;
constexpr std::chrono::seconds kSweepInterval{30};

ff_process_key ToKey(const ProcessId& id) {
  return {.start_boottime = id.start_boottime, .exec_id = id.exec_id, .pid = id.pid};
}

}  // namespace

Unwinder::Unwinder(UnwindMaps maps, std::string proc_root, size_t max_table_bytes,
                   std::shared_ptr<ParserProcess> parser)
    : maps_(maps),
      proc_root_(std::move(proc_root)),
      queue_(kMaxWaiting),
      tables_(maps, max_table_bytes, std::move(parser)),
      thread_(StartThread("ff-unwind", [this](const std::stop_token& stop) { Run(stop); })) {}

Unwinder::~Unwinder() = default;

bool Unwinder::Prepare(const ProcessId& id, std::shared_ptr<const ProcessImage> image) {
  Request request{id, std::move(image)};
  if (queue_.TryPush(request)) return true;
  const MutexLock lock(&mutex_);
  ++counts_.refused;
  return false;
}

void Unwinder::End(const ProcessId& id) {
  Request request{id, nullptr};
  queue_.TryPush(request);
}

UnwinderCounts Unwinder::counts() const {
  const MutexLock lock(&mutex_);
  return counts_;
}

void Unwinder::Run(const std::stop_token& stop) {
  int64_t swept_ns = SystemClock().MonotonicNanos();
  while (!stop.stop_requested()) {
    const std::optional<Request> request = queue_.Pop(stop, kSweepInterval);
    const int64_t now_ns = SystemClock().MonotonicNanos();
    if (request) Handle(*request, now_ns, stop);
    if (now_ns - swept_ns >= std::chrono::nanoseconds(kSweepInterval).count()) {
      Sweep(now_ns);
      swept_ns = now_ns;
    }
    const MutexLock lock(&mutex_);
    counts_.tables = tables_.counts();
    counts_.table_bytes = tables_.Bytes();
    counts_.table_count = tables_.size();
    counts_.process_count = processes_.size();
  }
}

bool Unwinder::IsPrepared(const Request& request, int64_t now_ns) {
  const auto known = processes_.find(request.id.pid);
  if (known == processes_.end() || known->second.id != request.id ||
      known->second.image.lock() != request.image)
    return false;
  if (known->second.retry_ns != 0 && now_ns >= known->second.retry_ns) return false;
  bool all = true;
  for (const uint32_t table : known->second.tables)
    all = tables_.Touch(table, now_ns) && all;
  return all;
}

void Unwinder::Handle(const Request& request, int64_t now_ns, const std::stop_token& stop) {
  const uint32_t pid = request.id.pid;
  if (!request.image) {
    const auto known = processes_.find(pid);
    if (known != processes_.end() && known->second.id == request.id) Forget(pid);
    return;
  }
  if (IsPrepared(request, now_ns)) return;
  Prepared prepared{.id = request.id, .image = request.image, .order = ++order_};
  std::vector<ff_mapping> mappings;
  // Where there are too many, those without a table go first: their code is no worse off.
  const bool all_fit = request.image->mappings.size() <= FF_MAX_UNWIND_MAPPINGS;
  for (const ImageMapping& mapping : request.image->mappings) {
    if (mappings.size() == FF_MAX_UNWIND_MAPPINGS) break;
    if (stop.stop_requested()) return;
    const ff_mapping resolved = tables_.Resolve(mapping, now_ns, &prepared.retry_ns);
    if (resolved.table != 0) prepared.tables.push_back(resolved.table);
    if (resolved.table != 0 || all_fit) mappings.push_back(resolved);
  }
  if (mappings.empty()) return;
  const auto known = processes_.find(pid);
  if (known != processes_.end() && known->second.id != request.id) Forget(pid);
  if (processes_.size() >= FF_MAX_UNWIND_PROCESSES && !processes_.contains(pid)) {
    const auto oldest = std::ranges::min_element(
        processes_, {}, [](const auto& item) { return item.second.order; });
    Forget(oldest->first);
  }
  if (!maps_.SetProcess(ToKey(request.id), mappings).ok()) {
    const MutexLock lock(&mutex_);
    ++counts_.failed;
    return;
  }
  processes_[pid] = std::move(prepared);
  // Last: had it ended before, nobody would tell.
  if (!IsAlive(proc_root_, request.id)) Forget(pid);
}

void Unwinder::Forget(uint32_t pid) {
  const auto found = processes_.find(pid);
  maps_.RemoveProcess(ToKey(found->second.id));
  processes_.erase(found);
}

void Unwinder::Sweep(int64_t now_ns) {
  std::vector<uint32_t> ended;
  std::unordered_set<uint32_t> in_use;
  for (const auto& [pid, prepared] : processes_) {
    if (IsAlive(proc_root_, prepared.id))
      in_use.insert(prepared.tables.begin(), prepared.tables.end());
    else
      ended.push_back(pid);
  }
  for (const uint32_t pid : ended)
    Forget(pid);
  tables_.Sweep(in_use, now_ns);
}

}  // namespace flamefleet::agent
