// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/cfi_rule.h"

namespace flamefleet::agent {
namespace {

bool IsKept(const CfiRegister& saved) {
  return saved.where == CfiWhere::kUnset || saved.where == CfiWhere::kSame;
}

}  // namespace

// Signatures of return addresses (pointer authentication) need no rule: the kernel program takes
// them off every one.
ff_unwind_rule ToRuleOfArm64(const CfiState& state) {
  if (state.return_address.where == CfiWhere::kLost) return {.cfa = FF_CFA_END};
  // What its entry says leads to the caller of the interrupted function.
  if (state.is_signal_frame) return {.cfa = FF_CFA_SIGNAL};
  const bool by_sp = state.cfa_register == kCfiAarch64.sp;
  if (!state.cfa_expression.empty() || (!by_sp && state.cfa_register != kCfiAarch64.bp) ||
      !Fits<int32_t>(state.cfa_offset))
    return {};
  ff_unwind_rule rule{.cfa_offset = static_cast<int32_t>(state.cfa_offset),
                      .cfa = static_cast<uint8_t>(by_sp ? FF_CFA_SP : FF_CFA_BP)};
  if (IsKept(state.return_address)) {
    rule.bp = FF_BP_SAME;
    return IsKept(state.bp) ? rule : ff_unwind_rule{};
  }
  const int64_t at = state.return_address.offset;
  if (state.return_address.where != CfiWhere::kAtCfa || !Fits<int16_t>(at)) return {};
  constexpr int64_t kWordBytes = 8;
  const bool is_pair = state.bp.where == CfiWhere::kAtCfa && state.bp.offset == at - kWordBytes &&
                       Fits<int16_t>(state.bp.offset);
  if (is_pair)
    rule.bp = FF_BP_AT_CFA;
  else
    rule.bp = IsKept(state.bp) ? FF_BP_SAME_LR_AT_CFA : FF_BP_UNKNOWN;
  rule.bp_offset = static_cast<int16_t>(is_pair ? state.bp.offset : at);
  return rule;
}

}  // namespace flamefleet::agent
