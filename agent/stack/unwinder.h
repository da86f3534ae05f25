// SPDX-License-Identifier: Apache-2.0
// Unwinder: prepares sampled processes for unwinding by tables, so that the kernel program finds
// their callers without frame pointers.
//
// Thread: Prepare, End and counts from any; it owns the thread "ff-unwind", which reads files and
// builds
//         tables, so that a large one delays neither the ring nor a profile.
// Bounds: kMaxWaiting processes wait; a further one is refused (and comes again with its next
//         sample). FF_MAX_UNWIND_PROCESSES are prepared; for a further one the oldest goes. Tables:
//         see UnwindTableCache.
// Errors: none; a process that is not prepared is unwound by frame pointers and counted by the
//         kernel program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "agent/host/process.h"
#include "agent/sample/unwind_maps.h"
#include "agent/stack/unwind_table_cache.h"
#include "base/mutex.h"
#include "base/queue.h"

namespace flamefleet::agent {

struct UnwinderCounts {
  UnwindTableCounts tables;
  uint64_t refused = 0;      // too many processes waited
  uint64_t failed = 0;       // the kernel did not take a process's mappings
  size_t table_bytes = 0;    // now
  size_t table_count = 0;    // now
  size_t process_count = 0;  // now
};

class Unwinder {
 public:
  Unwinder(UnwindMaps maps, std::string proc_root, size_t max_table_bytes,
           std::shared_ptr<ParserProcess> parser = ParserProcess::Installed());
  ~Unwinder();  // joins the thread
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  // Soon the process is unwound by the tables of what `image` has mapped. To be called again now
  // and then while it is sampled: its tables may have had to go meanwhile. False when it was
  // refused.
  bool Prepare(const ProcessId& id, std::shared_ptr<const ProcessImage> image);

  // What was prepared is given back. Waits in the same queue; when that is full, a sweep does it.
  void End(const ProcessId& id);

  UnwinderCounts counts() const;

 private:
  struct Request {
    ProcessId id;
    std::shared_ptr<const ProcessImage> image;  // null: it has ended
  };
  struct Prepared {
    ProcessId id;
    std::weak_ptr<const ProcessImage> image;
    std::vector<uint32_t> tables;
    int64_t retry_ns = 0;  // not 0: from then on it may have more tables
    uint64_t order = 0;    // ascending with time
  };

  void Run(const std::stop_token& stop);
  void Handle(const Request& request, int64_t now_ns, const std::stop_token& stop);
  // Whether it is prepared with this image and all its tables; then they count as used now.
  bool IsPrepared(const Request& request, int64_t now_ns);
  // Forgets processes that have ended and tables that nobody uses.
  void Sweep(int64_t now_ns);
  void Forget(uint32_t pid);

  const UnwindMaps maps_;
  const std::string proc_root_;

  BoundedQueue<Request> queue_;

  // ff-unwind only.
  UnwindTableCache tables_;
  std::unordered_map<uint32_t, Prepared> processes_;  // by PID: one address space of each
  uint64_t order_ = 0;

  mutable Mutex mutex_;
  UnwinderCounts counts_ FF_GUARDED_BY(mutex_);

  std::jthread thread_;  // last: stops first
};

}  // namespace flamefleet::agent
