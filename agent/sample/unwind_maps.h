// SPDX-License-Identifier: Apache-2.0
// UnwindMaps: the kernel's side of unwinding by tables: what bpf/unwind.bpf.h looks up.
//
// Thread: any, also while the sampler is used by another; must not outlive it. Each change waits
// until no CPU runs the program that could still see what was there before (some 10 ms).
// Bounds: FF_MAX_UNWIND_TABLES, FF_MAX_UNWIND_PROCESSES; over them kResourceExhausted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "bpf/profiler.h"

namespace flamefleet::agent {

class UnwindMaps {
 public:
  UnwindMaps(int tables_fd, int processes_fd)
      : tables_fd_(tables_fd), processes_fd_(processes_fd) {}

  // `words`: see "A table is" in bpf/profiler.h.
  Status AddTable(uint32_t number, std::span<const uint64_t> words) const;
  void RemoveTable(uint32_t number) const;

  // In the order of addresses; replaces what was there.
  Status SetProcess(const ff_process_key& process, std::span<const ff_mapping> mappings) const;
  void RemoveProcess(const ff_process_key& process) const;

 private:
  int tables_fd_;
  int processes_fd_;
};

}  // namespace flamefleet::agent
