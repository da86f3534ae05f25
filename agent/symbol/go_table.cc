// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/go_table.h"

#include <span>

#include "agent/symbol/symbol_table.h"

namespace flamefleet::agent {
namespace {

// Go 1.18 and 1.19; 1.20 and later.
constexpr uint32_t kMagic118 = 0xfffffff0;
constexpr uint32_t kMagic120 = 0xfffffff1;

struct Header {
  uint32_t magic;
  uint8_t zero[2];
  uint8_t min_instruction, pointer_size;
  uint64_t function_count, file_count;
  uint64_t text_start;                                // 0 from Go 1.26 on
  uint64_t names, units, files, programs, functions;  // offsets in this section
};

// moduledata begins with a pointer, 6 slices and 3 words.
constexpr uint64_t kTextInModule = 8 + 6 * 24 + 3 * 8;
// By which .text may be longer than Go's code when it holds nothing else.
constexpr uint64_t kMaxTextPadding = 64;

// Where Go's code of `size` bytes begins. It is in the header, but for Go 1.26, where the runtime's
// moduledata says it (unless the loader fills that in) or it is all that .text holds. Better no
// name than one of another function.
Result<uint64_t> TextStart(const ByteSource& source, const ElfFile& elf, const Header& header,
                           uint64_t size) {
  if (header.text_start != 0) return header.text_start;
  uint64_t text = 0;
  if (elf.go_module && elf.go_module->size >= kTextInModule + sizeof(text)) {
    FF_RETURN_IF_ERROR(source.ReadExact(std::as_writable_bytes(std::span(&text, 1)),
                                        elf.go_module->offset + kTextInModule));
    if (text != 0) return text;
  }
  if (elf.text && size <= elf.text->size && elf.text->size - size <= kMaxTextPadding)
    return elf.text->address;
  return NotFoundError("read .gopclntab: where its code begins is not known");
}

}  // namespace

Result<GoTable> ReadGoTable(const ByteSource& source, const ElfFile& elf) {
  const ElfFile::Section& section = *elf.go_pclntab;
  Header header;
  if (section.size < sizeof(header)) return InvalidArgumentError("read .gopclntab: too short");
  FF_RETURN_IF_ERROR(
      source.ReadExact(std::as_writable_bytes(std::span(&header, 1)), section.offset));
  if ((header.magic != kMagic118 && header.magic != kMagic120) || header.pointer_size != 8)
    return InvalidArgumentError("read .gopclntab: of a Go before 1.18 or after those we know");
  if (header.min_instruction != 1 && header.min_instruction != kGoArm64Instruction)
    return InvalidArgumentError("read .gopclntab: of another processor");
  const uint64_t rows_size = header.function_count * sizeof(GoTable::Row) + sizeof(uint32_t);
  if (header.function_count == 0 || header.function_count > kMaxFunctions ||
      header.functions > section.size || rows_size > section.size - header.functions ||
      header.names >= section.size || header.units <= header.names || header.units > section.size ||
      header.programs > header.functions)
    return InvalidArgumentError("read .gopclntab: its parts do not fit");

  GoTable table{.names = header.names,
                .names_size = header.units - header.names,
                .programs = header.programs,
                .functions = header.functions,
                .min_instruction = header.min_instruction,
                .has_lines = header.magic == kMagic120};
  table.rows.resize(header.function_count);
  const uint64_t rows_offset = section.offset + header.functions;
  FF_RETURN_IF_ERROR(source.ReadInto(table.rows, rows_offset));
  // The end of the last function follows the rows as one more entry.
  FF_RETURN_IF_ERROR(source.ReadExact(std::as_writable_bytes(std::span(&table.end, 1)),
                                      rows_offset + header.function_count * sizeof(GoTable::Row)));
  FF_ASSIGN_OR_RETURN(table.text, TextStart(source, elf, header, table.end));
  return table;
}

}  // namespace flamefleet::agent
