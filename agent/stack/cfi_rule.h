// SPDX-License-Identifier: Apache-2.0
// What call frame instructions say at one address, and its rule in the form of the kernel program.
//
// Thread: any; pure. Source: DWARF 5, 6.4; System V ABI AMD64, 3.6.2; DWARF for the Arm 64-bit
// Architecture, 4.1 and 5
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "bpf/profiler.h"

namespace flamefleet::agent {

// DWARF's numbers of the registers by which a caller is found.
struct CfiRegisters {
  uint64_t bp = 0;
  uint64_t sp = 0;
  uint64_t return_address = 0;
};
inline constexpr CfiRegisters kCfiX86_64 = {.bp = 6, .sp = 7, .return_address = 16};
inline constexpr CfiRegisters kCfiAarch64 = {.bp = 29, .sp = 31, .return_address = 30};

enum class CfiWhere : uint8_t { kUnset, kSame, kLost, kAtCfa, kExpression, kOther };

struct CfiRegister {
  CfiWhere where = CfiWhere::kUnset;
  int64_t offset = 0;           // kAtCfa
  std::string_view expression;  // kExpression
};

// What the instructions say at one address.
struct CfiState {
  const CfiRegisters* registers = nullptr;  // which one also tells the processor; never null
  bool is_signal_frame = false;             // made by the kernel for a handler
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  std::string_view cfa_expression;  // not empty: counts instead of the two above
  CfiRegister bp;
  CfiRegister return_address;

  CfiRegister* Find(uint64_t number) {
    if (number == registers->bp) return &bp;
    return number == registers->return_address ? &return_address : nullptr;
  }
};

// FF_CFA_UNKNOWN for what ff_unwind_rule cannot express.
ff_unwind_rule ToRule(const CfiState& state);
ff_unwind_rule ToRuleOfX86(const CfiState& state);
ff_unwind_rule ToRuleOfArm64(const CfiState& state);

// Whether `value` is the same as a T; of offsets in rules.
template <typename T>
bool Fits(int64_t value) {
  return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
}

}  // namespace flamefleet::agent
