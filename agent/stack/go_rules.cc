// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/go_rules.h"

#include <algorithm>
#include <string>
#include <vector>

#include "agent/stack/cfi_rule.h"
#include "agent/symbol/dwarf_cursor.h"
#include "agent/symbol/go_table.h"
#include "agent/symbol/piece_reader.h"

namespace flamefleet::agent {
namespace {

// Where in struct _func.
constexpr uint64_t kStackProgramAt = 16;
constexpr uint64_t kFlagsAt = 37;
constexpr uint64_t kFlagsAtWithLines = 41;

// FuncFlag.
constexpr uint8_t kOutermost = 1;        // goexit, mstart and the like
constexpr uint8_t kMovesToAnyStack = 2;  // writes SP: systemstack, mcall, calls of C and the vdso

constexpr int32_t kPointerBytes = 8;
constexpr int16_t kSavedBp = -16;  // below the return address, in all that has a frame

// From an offset in the function up to the next one: by how much SP is below the return address.
struct Step {
  uint32_t offset = 0;
  int32_t depth = 0;
};

// On arm64 a frame has the return address at its lower end, where SP is, and the frame pointer
// below that. SP never moves by less than both take.
ff_unwind_rule RuleOfArm64(int32_t depth) {
  if (depth == 0) return {.cfa = FF_CFA_SP, .bp = FF_BP_SAME};
  const int32_t pair = -depth - kPointerBytes;
  if (depth < 0 || !Fits<int16_t>(pair)) return {};
  return {.cfa_offset = depth,
          .bp_offset = static_cast<int16_t>(pair),
          .cfa = FF_CFA_SP,
          .bp = FF_BP_AT_CFA};
}

ff_unwind_rule RuleOf(bool is_arm64, int32_t depth, bool has_frame, uint8_t flags) {
  if ((flags & kOutermost) != 0) return {.cfa = FF_CFA_END};
  // With a frame it is still or again on its own stack when that is empty.
  if ((flags & kMovesToAnyStack) != 0 && (depth > 0 || !has_frame))
    return {.bp_offset = kSavedBp, .cfa = FF_CFA_OTHER_STACK, .bp = FF_BP_AT_CFA};
  if (is_arm64) return RuleOfArm64(depth);
  if (depth < 0 || depth > INT32_MAX - kPointerBytes) return {};
  const bool has_saved = depth >= kPointerBytes;
  return {.cfa_offset = depth + kPointerBytes,
          .bp_offset = has_saved ? kSavedBp : int16_t{0},
          .cfa = FF_CFA_SP,
          .bp = static_cast<uint8_t>(has_saved ? FF_BP_AT_CFA : FF_BP_SAME)};
}

class Reader {
 public:
  Reader(const GoTable& table, std::string programs, const CfiVisitor& visit)
      : table_(table), programs_(std::move(programs)), visit_(visit) {}

  // The function of a row: its program and flags. False when the budget is used up.
  bool Add(size_t row, uint32_t program, uint8_t flags) {
    const uint32_t size = table_.SizeOf(row);
    if (size == 0 || program == 0 || program >= programs_.size()) return true;
    if (!ReadSteps(program, size)) return budget_ > 0;
    const bool has_frame = std::ranges::any_of(steps_, [](Step step) { return step.depth > 0; });
    const uint64_t start = table_.text + table_.rows[row].entry;
    const bool is_arm64 = table_.min_instruction == kGoArm64Instruction;
    rows_.clear();
    for (const Step& step : steps_)
      rows_.push_back({start + step.offset, RuleOf(is_arm64, step.depth, has_frame, flags)});
    visit_(start, start + size, rows_);
    return true;
  }

 private:
  // Pairs: a change of the depth, which begins at -1, and for how many units it holds. A change of
  // 0, but in the first pair, is the end; what is between there and the next function never runs.
  bool ReadSteps(uint32_t program, uint32_t size) {
    DwarfCursor cursor(std::string_view(programs_).substr(program));
    steps_.clear();
    int32_t depth = -1;
    for (uint64_t offset = 0; offset < size;) {
      if (budget_ == 0) return false;
      --budget_;
      const auto change = static_cast<uint32_t>(cursor.Unsigned());  // zigzag
      if (change == 0 && offset > 0) return cursor.ok();
      const auto bytes = static_cast<uint32_t>(cursor.Unsigned());
      if (!cursor.ok() || bytes == 0) return false;
      depth =
          static_cast<int32_t>(static_cast<uint32_t>(depth) + ((change >> 1) ^ (0 - (change & 1))));
      steps_.push_back({static_cast<uint32_t>(offset), depth});
      offset += uint64_t{bytes} * table_.min_instruction;
    }
    return true;
  }

  const GoTable& table_;
  const std::string programs_;
  const CfiVisitor& visit_;
  std::vector<Step> steps_;
  std::vector<CfiRow> rows_;
  size_t budget_ = kMaxGoSteps;
};

}  // namespace

Status ReadGoRules(const ByteSource& source, const ElfFile& elf, const CfiVisitor& visit) {
  FF_ASSIGN_OR_RETURN(const GoTable table, ReadGoTable(source, elf));
  const ElfFile::Section& section = *elf.go_pclntab;
  const uint64_t programs_size = table.functions - table.programs;
  if (programs_size > kMaxGoProgramBytes)
    return ResourceExhaustedError("read .gopclntab: programs over 64 MiB");
  std::string programs(programs_size, '\0');
  FF_RETURN_IF_ERROR(source.ReadInto(programs, section.offset + table.programs));
  PieceReader functions(source, section.offset + table.functions, section.offset + section.size);
  Reader reader(table, std::move(programs), visit);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const uint64_t at = table.rows[i].function;
    uint32_t program = 0;
    uint8_t flags = 0;
    if (!functions.Read(at + kStackProgramAt, &program) ||
        !functions.Read(at + (table.has_lines ? kFlagsAtWithLines : kFlagsAt), &flags))
      continue;
    if (!reader.Add(i, program, flags)) {
      return ResourceExhaustedError("read .gopclntab: over " + std::to_string(kMaxGoSteps) +
                                    " changes of the stack pointer");
    }
  }
  return OkStatus();
}

}  // namespace flamefleet::agent
