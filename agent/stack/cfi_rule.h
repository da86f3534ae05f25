// SPDX-License-Identifier: Apache-2.0
// What call frame instructions say at one address, and its rule in the form of the kernel program.
//
// Thread: any; pure. Source: DWARF 5, 6.4; System V ABI AMD64, 3.6.2
#pragma once

#include <cstdint>
#include <string_view>

#include "bpf/profiler.h"

namespace flamefleet::agent {

// DWARF's numbers of the registers: System V ABI AMD64, figure 3.36.
constexpr uint64_t kCfiBp = 6;
constexpr uint64_t kCfiSp = 7;
constexpr uint64_t kCfiReturnAddress = 16;

enum class CfiWhere : uint8_t { kUnset, kSame, kLost, kAtCfa, kExpression, kOther };

struct CfiRegister {
  CfiWhere where = CfiWhere::kUnset;
  int64_t offset = 0;           // kAtCfa
  std::string_view expression;  // kExpression
};

// What the instructions say at one address.
struct CfiState {
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  std::string_view cfa_expression;  // not empty: counts instead of the two above
  CfiRegister bp;
  CfiRegister return_address;

  CfiRegister* Find(uint64_t number) {
    if (number == kCfiBp) return &bp;
    return number == kCfiReturnAddress ? &return_address : nullptr;
  }
};

// FF_CFA_UNKNOWN for what ff_unwind_rule cannot express.
ff_unwind_rule ToRule(const CfiState& state);

}  // namespace flamefleet::agent
