// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/unwinder.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kMaxWaiting = 256;
constexpr std::chrono::seconds kSweepInterval{10};

}  // namespace

Unwinder::Unwinder(UnwindMaps maps, std::string proc_root, size_t max_table_bytes)
    : maps_(maps),
      proc_root_(std::move(proc_root)),
      queue_(kMaxWaiting),
      tables_(maps, max_table_bytes),
      thread_(StartThread("ff-unwind", [this](const std::stop_token& stop) { Run(stop); })) {}

Unwinder::~Unwinder() = default;

bool Unwinder::Prepare(const ProcessId& id, std::shared_ptr<const ProcessImage> image) {
  Request request{id, std::move(image)};
  if (queue_.TryPush(request)) return true;
  const MutexLock lock(&mutex_);
  ++counts_.refused;
  return false;
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
    if (request) Handle(*request, now_ns);
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

void Unwinder::Handle(const Request& request, int64_t now_ns) {
  const uint32_t pid = request.id.pid;
  if (!IsAlive(pid)) return;
  Prepared prepared{.key = {.start_boottime = request.id.start_boottime,
                            .exec_id = request.id.exec_id,
                            .pid = pid},
                    .order = ++order_};
  std::vector<ff_mapping> mappings;
  for (const ImageMapping& mapping : request.image->mappings) {
    if (mappings.size() == FF_MAX_UNWIND_MAPPINGS) break;
    mappings.push_back(tables_.Resolve(mapping, now_ns));
    if (mappings.back().table != 0) prepared.tables.push_back(mappings.back().table);
  }
  if (mappings.empty()) return;
  const auto known = processes_.find(pid);
  const bool is_other = known != processes_.end() &&
                        (known->second.key.start_boottime != prepared.key.start_boottime ||
                         known->second.key.exec_id != prepared.key.exec_id);
  if (is_other) Forget(pid);
  if (processes_.size() >= FF_MAX_UNWIND_PROCESSES && !processes_.contains(pid)) {
    const auto oldest = std::ranges::min_element(
        processes_, {}, [](const auto& item) { return item.second.order; });
    Forget(oldest->first);
  }
  if (!maps_.SetProcess(prepared.key, mappings).ok()) {
    const MutexLock lock(&mutex_);
    ++counts_.failed;
    return;
  }
  processes_[pid] = std::move(prepared);
}

bool Unwinder::IsAlive(uint32_t pid) const {
  return ::access((proc_root_ + "/" + std::to_string(pid)).c_str(), F_OK) == 0;
}

void Unwinder::Forget(uint32_t pid) {
  const auto found = processes_.find(pid);
  maps_.RemoveProcess(found->second.key);
  processes_.erase(found);
}

void Unwinder::Sweep(int64_t now_ns) {
  std::vector<uint32_t> ended;
  for (const auto& [pid, prepared] : processes_) {
    if (!IsAlive(pid)) {
      ended.push_back(pid);
      continue;
    }
    for (const uint32_t table : prepared.tables)
      tables_.Touch(table, now_ns);
  }
  for (const uint32_t pid : ended)
    Forget(pid);
  tables_.Sweep(now_ns);
}

}  // namespace flamefleet::agent
