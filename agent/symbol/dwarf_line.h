// SPDX-License-Identifier: Apache-2.0
// DwarfLineTable: which file and line the instructions of one unit are of.
//
// Runs in the parsing child. Thread: one owner. Bounds: kMaxDwarfPieceBytes of a program,
// kMaxLineFiles of it; rows take time of the budget. Errors: as of DwarfFile.
// Source: DWARF 4 and 5, section 6.2
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/symbol/dwarf_unit.h"

namespace flamefleet::agent {

constexpr size_t kMaxLineFiles = 1 << 16;  // and as many folders
constexpr size_t kMaxLineFormats = 16;     // what a file is described by

struct DwarfPlace {
  uint64_t file = 0;  // a number for FileName
  uint32_t line = 0;  // 0: code that the compiler made
};

class DwarfLineTable {
 public:
  // Reads the header. `unit` must have its root read, and outlive the table.
  static Result<std::unique_ptr<DwarfLineTable>> Read(DwarfFile* reader, const DwarfUnit& unit);

  // Calls `sink` with the number of each of `addresses` (sorted) that the program has a place for;
  // several times when it has several.
  using Sink = std::function<void(size_t, const DwarfPlace&)>;
  Status Find(std::span<const uint64_t> addresses, const Sink& sink);

  // With its folder, as it was when it was compiled; "" when there is none of the number.
  std::string FileName(uint64_t number) const;

  DwarfLineTable(const DwarfLineTable&) = delete;
  DwarfLineTable& operator=(const DwarfLineTable&) = delete;

 private:
  struct Name {
    DwarfValue value;
    uint64_t folder = 0;
  };
  struct Row {
    uint64_t address = 0;
    uint64_t file = 1;
    uint64_t line = 1;
  };
  class Machine;

  DwarfLineTable(DwarfFile* reader, const DwarfUnit& unit) : reader_(reader), unit_(unit) {}
  Status ReadHeader(std::string_view bytes);
  Status ReadOldNames(DwarfCursor* cursor);
  Status ReadNames(DwarfCursor* cursor, std::vector<Name>* names);
  std::string FolderName(uint64_t number) const;

  DwarfFile* const reader_;
  const DwarfUnit& unit_;
  std::string buffer_;
  std::string_view bytes_;  // of the whole table
  uint16_t version_ = 0;
  uint8_t offset_size_ = 4;
  uint8_t address_size_ = 8;
  uint8_t instruction_bytes_ = 1;
  int8_t line_base_ = 0;
  uint8_t line_range_ = 1;
  uint8_t opcode_base_ = 0;
  std::vector<uint8_t> operand_counts_;  // of the standard opcodes
  size_t program_ = 0;                   // where it begins
  std::vector<Name> folders_;
  std::vector<Name> files_;
};

}  // namespace flamefleet::agent
