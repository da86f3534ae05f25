// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "agent/symbol/go_table.h"
#include "agent/symbol/piece_reader.h"
#include "agent/symbol/symbol_reader.h"

namespace flamefleet::agent {
namespace {

// What GoTable::Row::function leads to begins with: entry, then the offset of the name.
struct FunctionHead {
  uint32_t entry = 0;
  int32_t name = 0;
};

}  // namespace

Status SymbolReader::AddGoFunctions(const ByteSource& source, uint32_t file, const ElfFile& elf) {
  const ElfFile::Section& section = *elf.go_pclntab;
  FF_ASSIGN_OR_RETURN(const GoTable table, ReadGoTable(source, elf));
  const std::optional<uint32_t> first_name =
      AddNames(file, section.offset + table.names, table.names_size);
  if (!first_name) return ResourceExhaustedError("read .gopclntab: too many names");
  PieceReader pieces(source, section.offset + table.functions, section.offset + section.size);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const uint32_t size = table.SizeOf(i);
    FunctionHead head;
    if (size == 0 || !pieces.Read(table.rows[i].function, &head) || head.name < 0 ||
        static_cast<uint64_t>(head.name) >= table.names_size)
      continue;
    Add({.address = table.text + table.rows[i].entry,
         .size = size,
         .name = *first_name + static_cast<uint32_t>(head.name)});
  }
  return OkStatus();
}

}  // namespace flamefleet::agent
