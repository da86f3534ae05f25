// SPDX-License-Identifier: Apache-2.0
// Reads call frame information (.eh_frame, .debug_frame): for every instruction of a program, where
// its function's caller is.
//
// A section belongs to whoever is profiled: every length, offset and count in it is checked.
//
// Thread: any; pure. Units: addresses as the file gives them. Bounds: kMaxCfiInstructions for the
// whole section, kMaxCfiDepth saved states. Errors: kDataLoss when the chain of entries is broken,
// kResourceExhausted over a bound. An entry that is damaged or of an unknown form by itself is left
// out, a rule that ff_unwind_rule cannot express becomes FF_CFA_UNKNOWN.
// The processor is told by the register that an entry has the return address in.
// Source: Linux Standard Base Core, "Exception Frames"; DWARF 5, 6.4; for processors, cfi_rule.h
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"
#include "bpf/profiler.h"

namespace flamefleet::agent {

constexpr size_t kMaxCfiInstructions = 32
                                       << 20;  // librustc_driver, 6 MB of .eh_frame, has 4 million
constexpr size_t kMaxCfiDepth = 8;             // compilers nest one deep

// From `pc` on, up to the next row or the end of the function.
struct CfiRow {
  uint64_t pc = 0;
  ff_unwind_rule rule{};
};

// Called with what one entry (FDE) says: the range of a function, its rows in ascending order; the
// first row is for `start`.
using CfiVisitor = std::function<void(uint64_t start, uint64_t end, std::span<const CfiRow> rows)>;

Status ReadEhFrame(std::span<const std::byte> section, uint64_t section_address,
                   const CfiVisitor& visit);
Status ReadDebugFrame(std::span<const std::byte> section, const CfiVisitor& visit);

}  // namespace flamefleet::agent
