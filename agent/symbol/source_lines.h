// SPDX-License-Identifier: Apache-2.0
// SourceLines: what DWARF says of a set of addresses: functions, inlined ones first, and where in
// the source each of them is.
//
// Thread: any; values. Bounds: kMaxInlineDepth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flamefleet::agent {

constexpr size_t kMaxInlineDepth = 64;

// Why a file gives no lines at all, or fewer than it should.
enum class LineProblem : uint8_t {
  kNone,
  kAbsent,    // it has no DWARF
  kSplit,     // its DWARF is in .dwo files
  kTooLarge,  // over a bound of dwarf_sections.h or dwarf_unit.h
  kDamaged,
};

struct SourceLines {
  enum class State : uint8_t {
    kLate,  // there was no time for it; ask again
    kNone,  // DWARF says nothing of it
    kFound,
  };
  struct Frame {
    uint32_t function = 0;  // texts; 0: unknown
    uint32_t file = 0;      // texts; 0: unknown
    uint32_t line = 0;      // 0: unknown, or made by the compiler
  };

  LineProblem problem = LineProblem::kNone;
  std::vector<std::string> texts = {""};
  std::vector<Frame> frames;
  // By address: its frames, the innermost first.
  struct Address {
    State state = State::kLate;
    uint32_t first = 0;
    uint32_t count = 0;
  };
  std::vector<Address> addresses;
};

}  // namespace flamefleet::agent
