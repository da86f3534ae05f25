// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/dwarf_line.h"

#include <dwarf.h>

#include <algorithm>
#include <utility>

namespace flamefleet::agent {
namespace {

Status Damaged() {
  return InvalidArgumentError("read DWARF: a damaged table of lines");
}

}  // namespace

Result<std::unique_ptr<DwarfLineTable>> DwarfLineTable::Read(DwarfFile* reader,
                                                             const DwarfUnit& unit) {
  if (!unit.line_program) return NotFoundError("read DWARF: a unit without lines");
  std::unique_ptr<DwarfLineTable> table(new DwarfLineTable(reader, unit));
  DwarfCursor cursor(reader->sections().Peek(DwarfSection::kLine, *unit.line_program, 12));
  uint64_t length = cursor.Fixed(4);
  if (length == UINT32_MAX) {
    table->offset_size_ = 8;
    length = cursor.Fixed(8);
  }
  if (!cursor.ok()) return Damaged();
  FF_ASSIGN_OR_RETURN(const std::string_view bytes,
                      reader->sections().Read(DwarfSection::kLine, *unit.line_program + cursor.at(),
                                              length, &table->buffer_));
  FF_RETURN_IF_ERROR(table->ReadHeader(bytes));
  return table;
}

Status DwarfLineTable::ReadHeader(std::string_view bytes) {
  bytes_ = bytes;
  DwarfCursor cursor(bytes);
  version_ = static_cast<uint16_t>(cursor.Fixed(2));
  if (version_ < 2 || version_ > 5) return Damaged();
  address_size_ = unit_.address_size;
  if (version_ >= 5) {
    address_size_ = cursor.Byte();
    cursor.Skip(1);  // segment selectors
  }
  const uint64_t header_length = cursor.Fixed(offset_size_);
  if (!cursor.ok() || header_length > bytes.size() - cursor.at()) return Damaged();
  program_ = cursor.at() + static_cast<size_t>(header_length);
  instruction_bytes_ = cursor.Byte();
  if (version_ >= 4) cursor.Skip(1);  // instructions of a bundle
  cursor.Skip(1);                     // whether rows begin as statements
  line_base_ = static_cast<int8_t>(cursor.Byte());
  line_range_ = cursor.Byte();
  opcode_base_ = cursor.Byte();
  if (line_range_ == 0 || opcode_base_ == 0 || (address_size_ != 4 && address_size_ != 8))
    return Damaged();
  for (int i = 1; i < opcode_base_; ++i)
    operand_counts_.push_back(cursor.Byte());
  if (version_ < 5) return ReadOldNames(&cursor);
  FF_RETURN_IF_ERROR(ReadNames(&cursor, &folders_));
  return ReadNames(&cursor, &files_);
}

// Numbers count from 1; folder 0 is that of the unit.
Status DwarfLineTable::ReadOldNames(DwarfCursor* cursor) {
  folders_.emplace_back();
  files_.emplace_back();
  for (;;) {
    const std::string_view name = cursor->Text();
    if (name.empty()) break;
    if (folders_.size() > kMaxLineFiles) return Damaged();
    folders_.push_back({.value = {.form = DW_FORM_string, .text = name}});
  }
  for (;;) {
    const std::string_view name = cursor->Text();
    if (name.empty()) break;
    if (files_.size() > kMaxLineFiles) return Damaged();
    files_.push_back(
        {.value = {.form = DW_FORM_string, .text = name}, .folder = cursor->Unsigned()});
    cursor->Unsigned();  // when it was changed
    cursor->Unsigned();  // its size
  }
  return cursor->ok() ? OkStatus() : Damaged();
}

Status DwarfLineTable::ReadNames(DwarfCursor* cursor, std::vector<Name>* names) {
  std::vector<std::pair<uint64_t, DwarfAbbreviations::Attribute>> formats;
  const size_t format_count = cursor->Byte();
  if (format_count > kMaxLineFormats) return Damaged();
  for (size_t i = 0; i < format_count; ++i) {
    const uint64_t content = cursor->Unsigned();
    formats.push_back({content, {.form = static_cast<uint16_t>(cursor->Unsigned())}});
  }
  const uint64_t count = cursor->Unsigned();
  if (count > kMaxLineFiles) return Damaged();
  for (uint64_t i = 0; i < count && cursor->ok(); ++i) {
    Name name;
    for (const auto& [content, attribute] : formats) {
      DwarfValue value;
      if (!ReadDwarfValue(unit_, attribute, cursor, &value)) return Damaged();
      if (content == DW_LNCT_path) name.value = value;
      if (content == DW_LNCT_directory_index) name.folder = value.number;
    }
    names->push_back(name);
  }
  return cursor->ok() ? OkStatus() : Damaged();
}

std::string DwarfLineTable::FolderName(uint64_t number) const {
  if (number == 0) return unit_.folder;
  if (number >= folders_.size()) return {};
  std::string folder = reader_->TextOf(unit_, folders_[number].value, nullptr);
  if (!folder.starts_with('/') && !unit_.folder.empty()) folder = unit_.folder + "/" + folder;
  return folder;
}

std::string DwarfLineTable::FileName(uint64_t number) const {
  if (number >= files_.size()) return {};
  std::string name = reader_->TextOf(unit_, files_[number].value, nullptr);
  if (name.empty() || name.starts_with('/')) return name;
  const std::string folder = FolderName(files_[number].folder);
  return folder.empty() ? name : folder + "/" + name;
}

// Runs the program, row by row, and compares each with the addresses.
class DwarfLineTable::Machine {
 public:
  Machine(const DwarfLineTable& table, std::span<const uint64_t> addresses, const Sink& sink)
      : table_(table), addresses_(addresses), sink_(sink), cursor_(table.bytes_, table.program_) {}

  Status Run() {
    while (!cursor_.AtEnd() && table_.reader_->budget().Step()) {
      const uint8_t opcode = cursor_.Byte();
      if (opcode >= table_.opcode_base_) {
        const int adjusted = opcode - table_.opcode_base_;
        Advance(static_cast<uint64_t>(adjusted / table_.line_range_));
        row_.line += static_cast<uint64_t>(table_.line_base_ + adjusted % table_.line_range_);
        Emit(row_);
      } else if (opcode == 0) {
        Extended();
      } else {
        Standard(opcode);
      }
    }
    return cursor_.ok() ? OkStatus() : Damaged();
  }

 private:
  void Advance(uint64_t operations) { row_.address += operations * table_.instruction_bytes_; }

  void Standard(uint8_t opcode) {
    switch (opcode) {
      case DW_LNS_copy:
        return Emit(row_);
      case DW_LNS_advance_pc:
        return Advance(cursor_.Unsigned());
      case DW_LNS_advance_line:
        row_.line += static_cast<uint64_t>(cursor_.Signed());
        return;
      case DW_LNS_set_file:
        row_.file = cursor_.Unsigned();
        return;
      case DW_LNS_const_add_pc:
        return Advance(static_cast<uint64_t>((255 - table_.opcode_base_) / table_.line_range_));
      case DW_LNS_fixed_advance_pc:
        row_.address += cursor_.Fixed(2);
        return;
      default:
        for (int i = 0; i < table_.operand_counts_[opcode - 1U]; ++i)
          cursor_.Unsigned();
    }
  }

  void Extended() {
    const uint64_t length = cursor_.Unsigned();
    const size_t start = cursor_.at();
    if (length == 0) return;
    switch (cursor_.Byte()) {
      case DW_LNE_end_sequence:
        Emit(row_);
        row_ = {};
        last_ = {};
        has_last_ = false;
        break;
      case DW_LNE_set_address:
        row_.address = cursor_.Fixed(table_.address_size_);
        break;
      default:
        break;
    }
    if (cursor_.ok()) cursor_.MoveTo(start + std::min<uint64_t>(length, UINT32_MAX));
  }

  // The addresses from the last row up to this one are of the last one's place.
  void Emit(const Row& row) {
    // What the linker threw away is at 0 or 1.
    if (has_last_ && last_.address > 1 && row.address > last_.address) {
      const auto first = std::ranges::lower_bound(addresses_, last_.address);
      for (auto it = first; it != addresses_.end() && *it < row.address; ++it) {
        sink_(static_cast<size_t>(it - addresses_.begin()),
              {.file = last_.file, .line = static_cast<uint32_t>(last_.line)});
      }
    }
    last_ = row;
    has_last_ = true;
  }

  const DwarfLineTable& table_;
  const std::span<const uint64_t> addresses_;
  const Sink& sink_;
  DwarfCursor cursor_;
  Row row_;
  Row last_;
  bool has_last_ = false;
};

Status DwarfLineTable::Find(std::span<const uint64_t> addresses, const Sink& sink) {
  return Machine(*this, addresses, sink).Run();
}

}  // namespace flamefleet::agent
