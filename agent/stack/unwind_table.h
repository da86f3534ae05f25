// SPDX-License-Identifier: Apache-2.0
// UnwindTable: the unwind rules of one file in the form the kernel program searches.
//
// Thread: any; immutable. Units: addresses as the file gives them. Bounds: below. Errors:
// kResourceExhausted names the bound that the file passes, kNotFound: it has no rules.
// Source: layout in bpf/profiler.h, after "A table is".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "agent/stack/cfi.h"
#include "base/status.h"
#include "bpf/profiler.h"

namespace flamefleet::agent {

constexpr size_t kMaxUnwindRows = 2 << 20;   // 8 MiB; librustc_driver has 1.2 million
constexpr size_t kMaxUnwindRules = 4096;     // most seen: 764; a further one becomes rule 0
constexpr size_t kMaxUnwindPages = 1 << 18;  // 1 GiB of addresses

class UnwindTable {
 public:
  // Reads rules of another kind.
  using Reader = std::function<Status(const CfiVisitor& visit)>;

  // From the content of a file's .eh_frame and the address it is linked to, of its .debug_frame,
  // and of what `more` reads. Each of the latter two counts for functions that those before it say
  // nothing of.
  static Result<UnwindTable> Build(std::span<const std::byte> eh_frame, uint64_t address,
                                   std::span<const std::byte> debug_frame = {},
                                   const Reader& more = {});

  // A table that the parsing child has built, checked: whatever is looked up in it, every index is
  // inside.
  static Result<UnwindTable> FromWords(std::vector<uint64_t> words);

  // As the kernel program finds it; FF_CFA_UNKNOWN outside all functions.
  ff_unwind_rule Find(uint64_t address) const;

  std::span<const uint64_t> words() const { return words_; }
  size_t row_count() const { return row_count_; }
  size_t rule_count() const { return rule_count_; }

 private:
  std::vector<uint64_t> words_;
  size_t row_count_ = 0;
  size_t rule_count_ = 0;
};

}  // namespace flamefleet::agent
