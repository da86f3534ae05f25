// SPDX-License-Identifier: Apache-2.0
// CfiMachine: follows the instructions of one entry of call frame information.
//
// Thread: one owner. Bounds: kMaxCfiDepth saved states; each instruction takes one off the budget.
// Source: DWARF 5, 6.4.2; of what begins with GNU, Linux Standard Base Core, "DWARF Extensions"
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "agent/stack/cfi.h"
#include "agent/stack/cfi_cursor.h"
#include "agent/stack/cfi_rule.h"

namespace flamefleet::agent {

// What the entries (FDE) of one head (CIE) have in common.
struct CfiEntryHead {
  int64_t code_align = 1;
  int64_t data_align = 1;
  uint8_t pointer_encoding = 0;
  bool has_augmentation_data = false;
  CfiState initial;
};

class CfiMachine {
 public:
  CfiMachine(const CfiEntryHead& cie, size_t* budget)
      : cie_(cie), budget_(*budget), state_(cie.initial) {}

  // For the instructions of an FDE: where its function is, and where its rows go.
  void Begin(uint64_t start, uint64_t end, std::vector<CfiRow>* rows) {
    state_ = cie_.initial;
    pc_ = start;
    end_ = end;
    rows_ = rows;
  }

  // False when the instructions are damaged, unknown or over the budget.
  bool Run(CfiCursor reader);

  const CfiState& state() const { return state_; }

 private:
  void Emit();

  bool MoveTo(uint64_t pc);

  bool Advance(uint64_t units) {
    return MoveTo(pc_ + units * static_cast<uint64_t>(cie_.code_align));
  }

  void Save(uint64_t number, CfiWhere where, int64_t offset = 0, std::string_view expression = {}) {
    if (CfiRegister* const saved = state_.Find(number)) *saved = {where, offset, expression};
  }

  void SaveAtCfa(uint64_t number, int64_t factored) {
    Save(number, CfiWhere::kAtCfa, Scaled(factored));
  }

  void Restore(uint64_t number) {
    CfiState initial = cie_.initial;
    if (const CfiRegister* const saved = initial.Find(number)) *state_.Find(number) = *saved;
  }

  void DefineCfa(uint64_t number, int64_t offset) {
    state_.cfa_register = number;
    state_.cfa_offset = offset;
    state_.cfa_expression = {};
  }

  // Overflow wraps: the file may ask for it.
  int64_t Scaled(int64_t factored) const {
    return static_cast<int64_t>(static_cast<uint64_t>(factored) *
                                static_cast<uint64_t>(cie_.data_align));
  }

  bool Step(CfiCursor* reader);

  bool StepExtended(uint8_t opcode, CfiCursor* reader);

  bool StepCfa(uint8_t opcode, CfiCursor* reader);

  bool StepRegister(uint8_t opcode, CfiCursor* reader);

  const CfiEntryHead& cie_;
  size_t& budget_;
  CfiState state_;
  uint64_t pc_ = 0;
  uint64_t end_ = 0;
  std::vector<CfiRow>* rows_ = nullptr;
  std::vector<CfiState> saved_states_;
};

}  // namespace flamefleet::agent
