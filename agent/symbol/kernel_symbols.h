// SPDX-License-Identifier: Apache-2.0
// KernelSymbols: the functions of the kernel and its modules by address, from /proc/kallsyms.
//
// Thread: any; immutable. Bounds: the text is at most kMaxKallsymsBytes, read piece by piece; 8
// bytes per function and its name. Errors: kPermissionDenied when the kernel hides the addresses
// (all zero). Source: man 5 proc_kallsyms
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace flamefleet::agent {

constexpr size_t kMaxKallsymsBytes = 64 << 20;  // 5 MB with 120 thousand symbols

class KernelSymbols {
 public:
  KernelSymbols() = default;
  static Result<KernelSymbols> Read(const std::string& path);
  static Result<KernelSymbols> Parse(std::string_view kallsyms);

  // The function that begins last at or before the address; "" when none does.
  std::string_view Find(uint64_t address) const;
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    uint32_t address = 0;  // from kKernelBase
    uint32_t name = 0;     // where it begins in names_; ends with a 0
  };

  // Adds the whole lines at the front of `text` and takes them off.
  Status AddLines(std::string_view* text);
  Status AddLine(std::string_view line);
  Status Finish();

  std::vector<Entry> entries_;  // after Finish in the order of addresses
  std::string names_;
  bool any_address_ = false;
};

}  // namespace flamefleet::agent
