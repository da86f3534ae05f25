// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/cfi_machine.h"

namespace flamefleet::agent {

bool CfiMachine::Run(CfiCursor reader) {
  while (!reader.AtEnd()) {
    if (budget_ == 0) return false;
    --budget_;
    if (!Step(&reader) || !reader.ok()) return false;
  }
  Emit();
  return reader.ok();
}

void CfiMachine::Emit() {
  if (rows_ == nullptr || pc_ >= end_) return;
  const ff_unwind_rule rule = ToRule(state_);
  if (!rows_->empty() && rows_->back().pc == pc_)
    rows_->back().rule = rule;
  else
    rows_->push_back({pc_, rule});
}

bool CfiMachine::MoveTo(uint64_t pc) {
  if (pc < pc_) return false;
  Emit();
  pc_ = pc;
  return true;
}

bool CfiMachine::Step(CfiCursor* reader) {
  const auto byte = reader->Byte();
  const uint8_t low = byte & 0x3f;
  switch (byte & 0xc0) {
    case 0x40:  // advance_loc
      return Advance(low);
    case 0x80:  // offset
      SaveAtCfa(low, static_cast<int64_t>(reader->Unsigned()));
      return true;
    case 0xc0:  // restore
      Restore(low);
      return true;
    default:
      return StepExtended(low, reader);
  }
}

bool CfiMachine::StepExtended(uint8_t opcode, CfiCursor* reader) {
  switch (opcode) {
    case 0x00:  // nop
      return true;
    case 0x01:  // set_loc
      return MoveTo(reader->Pointer(cie_.pointer_encoding));
    case 0x02:  // advance_loc1
      return Advance(reader->Byte());
    case 0x03:  // advance_loc2
      return Advance(reader->Fixed(2));
    case 0x04:  // advance_loc4
      return Advance(reader->Fixed(4));
    case 0x0a:  // remember_state
      if (saved_states_.size() == kMaxCfiDepth) return false;
      saved_states_.push_back(state_);
      return true;
    case 0x0b:  // restore_state
      if (saved_states_.empty()) return false;
      state_ = saved_states_.back();
      saved_states_.pop_back();
      return true;
    case 0x2d:  // AARCH64_negate_ra_state: the return address is signed, or no longer
      return true;
    case 0x2e:  // GNU_args_size: of interest to exceptions only
      reader->Unsigned();
      return true;
    default:
      return StepCfa(opcode, reader) || StepRegister(opcode, reader);
  }
}

bool CfiMachine::StepCfa(uint8_t opcode, CfiCursor* reader) {
  switch (opcode) {
    case 0x0c: {  // def_cfa
      const uint64_t number = reader->Unsigned();
      DefineCfa(number, static_cast<int64_t>(reader->Unsigned()));
      return true;
    }
    case 0x0d:  // def_cfa_register
      DefineCfa(reader->Unsigned(), state_.cfa_offset);
      return true;
    case 0x0e:  // def_cfa_offset
      DefineCfa(state_.cfa_register, static_cast<int64_t>(reader->Unsigned()));
      return true;
    case 0x0f:  // def_cfa_expression
      state_.cfa_expression = reader->Block(reader->Unsigned());
      return !state_.cfa_expression.empty();
    case 0x12: {  // def_cfa_sf
      const uint64_t number = reader->Unsigned();
      DefineCfa(number, Scaled(reader->Signed()));
      return true;
    }
    case 0x13:  // def_cfa_offset_sf
      DefineCfa(state_.cfa_register, Scaled(reader->Signed()));
      return true;
    default:
      return false;
  }
}

bool CfiMachine::StepRegister(uint8_t opcode, CfiCursor* reader) {
  const uint64_t number = reader->Unsigned();  // comes first in all of these
  switch (opcode) {
    case 0x05:  // offset_extended
      SaveAtCfa(number, static_cast<int64_t>(reader->Unsigned()));
      return true;
    case 0x06:  // restore_extended
      Restore(number);
      return true;
    case 0x07:  // undefined
      Save(number, CfiWhere::kLost);
      return true;
    case 0x08:  // same_value
      Save(number, CfiWhere::kSame);
      return true;
    case 0x10:  // expression
      Save(number, CfiWhere::kExpression, 0, reader->Block(reader->Unsigned()));
      return true;
    case 0x11:  // offset_extended_sf
      SaveAtCfa(number, reader->Signed());
      return true;
    case 0x2f:  // GNU_negative_offset_extended
      SaveAtCfa(number, -static_cast<int64_t>(reader->Unsigned() & INT64_MAX));
      return true;
    case 0x09:  // register
    case 0x14:  // val_offset
      reader->Unsigned();
      Save(number, CfiWhere::kOther);
      return true;
    case 0x15:  // val_offset_sf
      reader->Signed();
      Save(number, CfiWhere::kOther);
      return true;
    case 0x16:  // val_expression
      reader->Block(reader->Unsigned());
      Save(number, CfiWhere::kOther);
      return true;
    default:
      return false;
  }
}

}  // namespace flamefleet::agent
