// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/cfi.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/stack/dwarf_reader.h"

namespace flamefleet::agent {
namespace {

using Bytes = std::span<const std::byte>;

// DWARF's numbers of the registers: System V ABI AMD64, figure 3.36.
constexpr uint64_t kBp = 6;
constexpr uint64_t kSp = 7;
constexpr uint64_t kReturnAddress = 16;

constexpr size_t kMaxCies = 256;        // kept parsed; a linked file has a handful
constexpr size_t kMaxAugmentation = 8;  // letters; "zPLRS" is the longest in use

enum class Where : uint8_t { kUnset, kSame, kLost, kAtCfa, kExpression, kOther };

struct SavedRegister {
  Where where = Where::kUnset;
  int64_t offset = 0;  // kAtCfa
  Bytes expression;    // kExpression
};

// What the instructions say at one address.
struct State {
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  Bytes cfa_expression;  // not empty: counts instead of the two above
  SavedRegister bp;
  SavedRegister return_address;

  SavedRegister* Find(uint64_t number) {
    if (number == kBp) return &bp;
    return number == kReturnAddress ? &return_address : nullptr;
  }
};

struct Cie {
  int64_t code_align = 1;
  int64_t data_align = 1;
  uint8_t pointer_encoding = 0;
  bool has_augmentation_data = false;
  State initial;
};

// "register + offset" or the 8 bytes there.
struct SimpleExpression {
  uint64_t reg = 0;
  int64_t offset = 0;
  bool dereferenced = false;
};

constexpr uint8_t kOpDeref = 0x06;
constexpr uint8_t kOpBreg0 = 0x70;
constexpr uint8_t kOpLit0 = 0x30;

std::optional<SimpleExpression> ReadSimpleExpression(Bytes bytes) {
  DwarfReader reader(bytes, 0);
  const auto op = reader.Fixed<uint8_t>();
  if (op < kOpBreg0 || op > kOpBreg0 + 31) return std::nullopt;
  SimpleExpression expression{.reg = uint64_t{op} - kOpBreg0, .offset = reader.Sleb()};
  if (!reader.AtEnd()) {
    if (reader.Fixed<uint8_t>() != kOpDeref) return std::nullopt;
    expression.dereferenced = true;
  }
  if (!reader.ok() || !reader.AtEnd()) return std::nullopt;
  return expression;
}

// The linker's rule for procedure linkage tables, all of whose entries share one FDE:
// sp + 8 + ((ip & 15) >= n) * 8. Returns n.
std::optional<uint8_t> ReadPltExpression(Bytes bytes) {
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

bool IsAtSp(const SavedRegister& saved, int64_t offset) {
  if (saved.where != Where::kExpression) return false;
  const auto address = ReadSimpleExpression(saved.expression);
  return address && address->reg == kSp && address->offset == offset && !address->dereferenced;
}

template <typename T>
bool Fits(int64_t value) {
  return value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
}

bool SetCfa(const State& state, ff_unwind_rule* rule) {
  int64_t offset = state.cfa_offset;
  if (state.cfa_expression.empty()) {
    if (state.cfa_register != kSp && state.cfa_register != kBp) return false;
    rule->cfa = state.cfa_register == kSp ? FF_CFA_SP : FF_CFA_BP;
  } else if (const auto n = ReadPltExpression(state.cfa_expression)) {
    rule->cfa = FF_CFA_PLT;
    offset = *n;
  } else {
    const auto expression = ReadSimpleExpression(state.cfa_expression);
    if (!expression || !expression->dereferenced || expression->reg != kBp) return false;
    rule->cfa = FF_CFA_DEREF_BP;
    offset = expression->offset;
  }
  rule->cfa_offset = static_cast<int32_t>(offset);
  return Fits<int32_t>(offset);
}

bool SetBp(const State& state, ff_unwind_rule* rule) {
  int64_t offset = 0;
  switch (state.bp.where) {
    case Where::kUnset:
    case Where::kSame:
      rule->bp = FF_BP_SAME;
      break;
    case Where::kAtCfa:
      rule->bp = FF_BP_AT_CFA;
      offset = state.bp.offset;
      break;
    case Where::kExpression: {
      const auto address = ReadSimpleExpression(state.bp.expression);
      const bool known = address && !address->dereferenced && address->reg == kBp;
      rule->bp = known ? FF_BP_AT_BP : FF_BP_UNKNOWN;
      if (known) offset = address->offset;
      break;
    }
    case Where::kLost:
    case Where::kOther:
      rule->bp = FF_BP_UNKNOWN;
      break;
  }
  rule->bp_offset = static_cast<int16_t>(offset);
  return Fits<int16_t>(offset);
}

ff_unwind_rule ToRule(const State& state) {
  if (state.return_address.where == Where::kLost) return {.cfa = FF_CFA_END};
  if (IsAtSp(state.return_address, FF_SIGNAL_IP)) {
    const auto cfa = ReadSimpleExpression(state.cfa_expression);
    const bool known = cfa && cfa->reg == kSp && cfa->offset == FF_SIGNAL_SP && cfa->dereferenced &&
                       IsAtSp(state.bp, FF_SIGNAL_BP);
    return {.cfa = static_cast<uint8_t>(known ? FF_CFA_SIGNAL : FF_CFA_UNKNOWN)};
  }
  ff_unwind_rule rule{};
  constexpr int64_t kReturnAddressAt = -8;
  const bool known = state.return_address.where == Where::kAtCfa &&
                     state.return_address.offset == kReturnAddressAt && SetCfa(state, &rule) &&
                     SetBp(state, &rule);
  return known ? rule : ff_unwind_rule{};
}

// Follows the instructions of one entry.
class Machine {
 public:
  Machine(const Cie& cie, size_t* budget) : cie_(cie), budget_(*budget) {}

  // For the instructions of an FDE: where its function is, and where its rows go.
  void Begin(uint64_t start, uint64_t end, std::vector<CfiRow>* rows) {
    state_ = cie_.initial;
    pc_ = start;
    end_ = end;
    rows_ = rows;
  }

  // False when the instructions are damaged, unknown or over the budget.
  bool Run(DwarfReader reader) {
    while (!reader.AtEnd()) {
      if (budget_ == 0) return false;
      --budget_;
      if (!Step(&reader) || !reader.ok()) return false;
    }
    Emit();
    return reader.ok();
  }

  const State& state() const { return state_; }

 private:
  void Emit() {
    if (rows_ == nullptr || pc_ >= end_) return;
    const ff_unwind_rule rule = ToRule(state_);
    if (!rows_->empty() && rows_->back().pc == pc_)
      rows_->back().rule = rule;
    else
      rows_->push_back({pc_, rule});
  }

  bool MoveTo(uint64_t pc) {
    if (pc < pc_) return false;
    Emit();
    pc_ = pc;
    return true;
  }

  bool Advance(uint64_t units) {
    return MoveTo(pc_ + units * static_cast<uint64_t>(cie_.code_align));
  }

  void Save(uint64_t number, Where where, int64_t offset = 0, Bytes expression = {}) {
    if (SavedRegister* const saved = state_.Find(number)) *saved = {where, offset, expression};
  }

  void SaveAtCfa(uint64_t number, int64_t factored) {
    Save(number, Where::kAtCfa, Scaled(factored));
  }

  void Restore(uint64_t number) {
    State initial = cie_.initial;
    if (const SavedRegister* const saved = initial.Find(number)) *state_.Find(number) = *saved;
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

  bool Step(DwarfReader* reader) {
    const auto byte = reader->Fixed<uint8_t>();
    const uint8_t low = byte & 0x3f;
    switch (byte & 0xc0) {
      case 0x40:  // advance_loc
        return Advance(low);
      case 0x80:  // offset
        SaveAtCfa(low, static_cast<int64_t>(reader->Uleb()));
        return true;
      case 0xc0:  // restore
        Restore(low);
        return true;
      default:
        return StepExtended(low, reader);
    }
  }

  bool StepExtended(uint8_t opcode, DwarfReader* reader) {
    switch (opcode) {
      case 0x00:  // nop
        return true;
      case 0x01:  // set_loc
        return MoveTo(reader->Pointer(cie_.pointer_encoding));
      case 0x02:  // advance_loc1
        return Advance(reader->Fixed<uint8_t>());
      case 0x03:  // advance_loc2
        return Advance(reader->Fixed<uint16_t>());
      case 0x04:  // advance_loc4
        return Advance(reader->Fixed<uint32_t>());
      case 0x0a:  // remember_state
        if (saved_states_.size() == kMaxCfiDepth) return false;
        saved_states_.push_back(state_);
        return true;
      case 0x0b:  // restore_state
        if (saved_states_.empty()) return false;
        state_ = saved_states_.back();
        saved_states_.pop_back();
        return true;
      case 0x2e:  // GNU_args_size: of interest to exceptions only
        reader->Uleb();
        return true;
      default:
        return StepCfa(opcode, reader) || StepRegister(opcode, reader);
    }
  }

  bool StepCfa(uint8_t opcode, DwarfReader* reader) {
    switch (opcode) {
      case 0x0c: {  // def_cfa
        const uint64_t number = reader->Uleb();
        DefineCfa(number, static_cast<int64_t>(reader->Uleb()));
        return true;
      }
      case 0x0d:  // def_cfa_register
        DefineCfa(reader->Uleb(), state_.cfa_offset);
        return true;
      case 0x0e:  // def_cfa_offset
        DefineCfa(state_.cfa_register, static_cast<int64_t>(reader->Uleb()));
        return true;
      case 0x0f:  // def_cfa_expression
        state_.cfa_expression = reader->Block(reader->Uleb());
        return !state_.cfa_expression.empty();
      case 0x12: {  // def_cfa_sf
        const uint64_t number = reader->Uleb();
        DefineCfa(number, Scaled(reader->Sleb()));
        return true;
      }
      case 0x13:  // def_cfa_offset_sf
        DefineCfa(state_.cfa_register, Scaled(reader->Sleb()));
        return true;
      default:
        return false;
    }
  }

  bool StepRegister(uint8_t opcode, DwarfReader* reader) {
    const uint64_t number = reader->Uleb();  // comes first in all of these
    switch (opcode) {
      case 0x05:  // offset_extended
        SaveAtCfa(number, static_cast<int64_t>(reader->Uleb()));
        return true;
      case 0x06:  // restore_extended
        Restore(number);
        return true;
      case 0x07:  // undefined
        Save(number, Where::kLost);
        return true;
      case 0x08:  // same_value
        Save(number, Where::kSame);
        return true;
      case 0x10:  // expression
        Save(number, Where::kExpression, 0, reader->Block(reader->Uleb()));
        return true;
      case 0x11:  // offset_extended_sf
        SaveAtCfa(number, reader->Sleb());
        return true;
      case 0x2f:  // GNU_negative_offset_extended
        SaveAtCfa(number, -static_cast<int64_t>(reader->Uleb() & INT64_MAX));
        return true;
      case 0x09:  // register
      case 0x14:  // val_offset
        reader->Uleb();
        Save(number, Where::kOther);
        return true;
      case 0x15:  // val_offset_sf
        reader->Sleb();
        Save(number, Where::kOther);
        return true;
      case 0x16:  // val_expression
        reader->Block(reader->Uleb());
        Save(number, Where::kOther);
        return true;
      default:
        return false;
    }
  }

  const Cie& cie_;
  size_t& budget_;
  State state_;
  uint64_t pc_ = 0;
  uint64_t end_ = 0;
  std::vector<CfiRow>* rows_ = nullptr;
  std::vector<State> saved_states_;
};

class SectionReader {
 public:
  SectionReader(Bytes section, uint64_t address, const CfiVisitor& visit)
      : section_(section), address_(address), visit_(visit) {}

  Status Run() {
    size_t at = 0;
    while (at < section_.size()) {
      DwarfReader reader = At(at);
      const auto length = reader.Fixed<uint32_t>();
      if (length == 0 && reader.ok()) break;      // the end; linkers put it last
      constexpr uint32_t kLongForm = 0xffffffff;  // no tool writes it into .eh_frame
      const size_t content = at + sizeof(length);
      if (!reader.ok() || length == kLongForm || length > section_.size() - content)
        return DataLossError("read .eh_frame: entry at " + std::to_string(at) + " is too long");
      const auto id = reader.Fixed<uint32_t>();
      if (id != 0 && length > sizeof(id)) ReadFde(content, length, id);
      if (budget_ == 0)
        return ResourceExhaustedError("read .eh_frame: over " +
                                      std::to_string(kMaxCfiInstructions) + " instructions");
      at = content + length;
    }
    return OkStatus();
  }

 private:
  DwarfReader At(size_t at) const { return {section_.subspan(at), address_ + at}; }

  void ReadFde(size_t content, uint32_t length, uint32_t cie_distance) {
    if (cie_distance > content) return;
    const Cie* const cie = FindCie(content - cie_distance);
    if (cie == nullptr) return;
    constexpr size_t kIdBytes = 4;
    DwarfReader reader(section_.subspan(content + kIdBytes, length - kIdBytes),
                       address_ + content + kIdBytes);
    const uint64_t start = reader.Pointer(cie->pointer_encoding);
    const uint64_t size = reader.Value(cie->pointer_encoding & 0x0f);
    if (cie->has_augmentation_data) reader.Block(reader.Uleb());
    // A function that the linker dropped begins at 0.
    if (!reader.ok() || start == 0 || size == 0 || start + size < start) return;
    rows_.clear();
    Machine machine(*cie, &budget_);
    machine.Begin(start, start + size, &rows_);
    if (machine.Run(reader)) visit_(start, start + size, rows_);
  }

  // Null when it cannot be understood.
  const Cie* FindCie(size_t at) {
    if (const auto found = cies_.find(at); found != cies_.end())
      return found->second ? &*found->second : nullptr;
    if (cies_.size() == kMaxCies) cies_.clear();
    const std::optional<Cie>& cie = cies_[at] = ReadCie(at);
    return cie ? &*cie : nullptr;
  }

  std::optional<Cie> ReadCie(size_t at) {
    DwarfReader header = At(at);
    DwarfReader reader(header.Block(header.Fixed<uint32_t>()), address_ + at + sizeof(uint32_t));
    if (reader.Fixed<uint32_t>() != 0) return std::nullopt;  // not a CIE
    const auto version = reader.Fixed<uint8_t>();
    if (version != 1 && version != 3) return std::nullopt;
    std::string augmentation;
    while (const auto c = reader.Fixed<char>()) {
      if (augmentation.size() == kMaxAugmentation) return std::nullopt;
      augmentation += c;
    }
    Cie cie;
    cie.code_align = static_cast<int64_t>(reader.Uleb());
    cie.data_align = reader.Sleb();
    const uint64_t return_column = version == 1 ? reader.Fixed<uint8_t>() : reader.Uleb();
    if (return_column != kReturnAddress) return std::nullopt;
    if (!ReadAugmentation(augmentation, &reader, &cie) || !reader.ok()) return std::nullopt;
    Machine machine(cie, &budget_);
    if (!machine.Run(reader)) return std::nullopt;
    cie.initial = machine.state();
    return cie;
  }

  static bool ReadAugmentation(const std::string& augmentation, DwarfReader* reader, Cie* cie) {
    if (augmentation.empty()) return true;
    if (augmentation.front() != 'z') return false;
    cie->has_augmentation_data = true;
    const uint64_t size = reader->Uleb();
    const size_t start = reader->position();
    for (const char c : augmentation.substr(1)) {
      if (c == 'R') {
        cie->pointer_encoding = reader->Fixed<uint8_t>();
      } else if (c == 'L') {
        reader->Fixed<uint8_t>();
      } else if (c == 'P') {
        reader->Value(reader->Fixed<uint8_t>() & 0x0f);
      } else if (c != 'S') {  // S, signal frame: its rules tell, see ToRule
        return false;
      }
    }
    const size_t used = reader->position() - start;
    if (used > size) return false;
    reader->Block(size - used);
    return true;
  }

  const Bytes section_;
  const uint64_t address_;
  const CfiVisitor& visit_;
  std::unordered_map<size_t, std::optional<Cie>> cies_;  // by offset
  std::vector<CfiRow> rows_;
  size_t budget_ = kMaxCfiInstructions;
};

}  // namespace

Status ReadEhFrame(std::span<const std::byte> section, uint64_t section_address,
                   const CfiVisitor& visit) {
  return SectionReader(section, section_address, visit).Run();
}

}  // namespace flamefleet::agent
