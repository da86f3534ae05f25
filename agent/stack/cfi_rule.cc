// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/cfi_rule.h"

#include <array>
#include <optional>

#include "agent/stack/cfi_cursor.h"

namespace flamefleet::agent {
namespace {

// "register + offset" or the 8 bytes there.
struct SimpleExpression {
  uint64_t reg = 0;
  int64_t offset = 0;
  bool dereferenced = false;
};

constexpr uint8_t kOpDeref = 0x06;
constexpr uint8_t kOpBreg0 = 0x70;
constexpr uint8_t kOpLit0 = 0x30;

std::optional<SimpleExpression> ReadSimpleExpression(std::string_view bytes) {
  CfiCursor reader(bytes, 0);
  const auto op = reader.Byte();
  if (op < kOpBreg0 || op > kOpBreg0 + 31) return std::nullopt;
  SimpleExpression expression{.reg = uint64_t{op} - kOpBreg0, .offset = reader.Signed()};
  if (!reader.AtEnd()) {
    if (reader.Byte() != kOpDeref) return std::nullopt;
    expression.dereferenced = true;
  }
  if (!reader.ok() || !reader.AtEnd()) return std::nullopt;
  return expression;
}

// The linker's rule for procedure linkage tables, all of whose entries share one FDE:
// sp + 8 + ((ip & 15) >= n) * 8. Returns n.
std::optional<uint8_t> ReadPltExpression(std::string_view bytes) {
  constexpr std::array<uint8_t, 11> kPattern = {0x77, 8,    0x80, 0,    0x3f, 0x1a,
                                                0xff, 0x2a, 0x33, 0x24, 0x22};
  constexpr size_t kN = 6;  // the place of n, a literal
  if (bytes.size() != kPattern.size()) return std::nullopt;
  const auto n = static_cast<uint8_t>(bytes[kN]);
  for (size_t i = 0; i < kPattern.size(); ++i) {
    if (i != kN && static_cast<uint8_t>(bytes[i]) != kPattern[i]) return std::nullopt;
  }
  if (n < kOpLit0 || n > kOpLit0 + 15) return std::nullopt;
  return static_cast<uint8_t>(n - kOpLit0);
}

bool IsAtSp(const CfiRegister& saved, int64_t offset) {
  if (saved.where != CfiWhere::kExpression) return false;
  const auto address = ReadSimpleExpression(saved.expression);
  return address && address->reg == kCfiX86_64.sp && address->offset == offset &&
         !address->dereferenced;
}

bool SetCfa(const CfiState& state, ff_unwind_rule* rule) {
  int64_t offset = state.cfa_offset;
  if (state.cfa_expression.empty()) {
    if (state.cfa_register != kCfiX86_64.sp && state.cfa_register != kCfiX86_64.bp) return false;
    rule->cfa = state.cfa_register == kCfiX86_64.sp ? FF_CFA_SP : FF_CFA_BP;
  } else if (const auto n = ReadPltExpression(state.cfa_expression)) {
    rule->cfa = FF_CFA_PLT;
    offset = *n;
  } else {
    const auto expression = ReadSimpleExpression(state.cfa_expression);
    if (!expression || !expression->dereferenced || expression->reg != kCfiX86_64.bp) return false;
    rule->cfa = FF_CFA_DEREF_BP;
    offset = expression->offset;
  }
  rule->cfa_offset = static_cast<int32_t>(offset);
  return Fits<int32_t>(offset);
}

bool SetBp(const CfiState& state, ff_unwind_rule* rule) {
  int64_t offset = 0;
  switch (state.bp.where) {
    case CfiWhere::kUnset:
    case CfiWhere::kSame:
      rule->bp = FF_BP_SAME;
      break;
    case CfiWhere::kAtCfa:
      rule->bp = FF_BP_AT_CFA;
      offset = state.bp.offset;
      break;
    case CfiWhere::kExpression: {
      const auto address = ReadSimpleExpression(state.bp.expression);
      const bool known = address && !address->dereferenced && address->reg == kCfiX86_64.bp;
      rule->bp = known ? FF_BP_AT_BP : FF_BP_UNKNOWN;
      if (known) offset = address->offset;
      break;
    }
    case CfiWhere::kLost:
    case CfiWhere::kOther:
      rule->bp = FF_BP_UNKNOWN;
      break;
  }
  rule->bp_offset = static_cast<int16_t>(offset);
  return Fits<int16_t>(offset);
}

}  // namespace

ff_unwind_rule ToRule(const CfiState& state) {
  return state.registers == &kCfiAarch64 ? ToRuleOfArm64(state) : ToRuleOfX86(state);
}

ff_unwind_rule ToRuleOfX86(const CfiState& state) {
  if (state.return_address.where == CfiWhere::kLost) return {.cfa = FF_CFA_END};
  if (IsAtSp(state.return_address, FF_SIGNAL_IP)) {
    const auto cfa = ReadSimpleExpression(state.cfa_expression);
    const bool known = cfa && cfa->reg == kCfiX86_64.sp && cfa->offset == FF_SIGNAL_SP &&
                       cfa->dereferenced && IsAtSp(state.bp, FF_SIGNAL_BP);
    return {.cfa = static_cast<uint8_t>(known ? FF_CFA_SIGNAL : FF_CFA_UNKNOWN)};
  }
  ff_unwind_rule rule{};
  constexpr int64_t kReturnAddressAt = -8;
  const bool known = state.return_address.where == CfiWhere::kAtCfa &&
                     state.return_address.offset == kReturnAddressAt && SetCfa(state, &rule) &&
                     SetBp(state, &rule);
  return known ? rule : ff_unwind_rule{};
}

}  // namespace flamefleet::agent
