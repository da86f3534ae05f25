// SPDX-License-Identifier: Apache-2.0
// GoTable: the head and the rows of .gopclntab, Go's own table of its functions, which stripped
// programs have as well.
//
// The section belongs to whoever is profiled: every offset and count in it is checked. Runs in the
// parsing child.
//
// Thread: any; immutable. Units: offsets in the section, addresses as the file gives them. Bounds:
// kMaxFunctions. Errors: kInvalidArgument for a Go before 1.18 or one that we do not know yet, and
// for parts that do not fit; kNotFound when nothing tells where the code begins.
// Source: Go's src/runtime/symtab.go (pcHeader, functab, _func), src/internal/abi/symtab.go
#pragma once

#include <cstdint>
#include <vector>

#include "agent/symbol/byte_source.h"
#include "agent/symbol/elf_file.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr uint8_t kGoArm64Instruction = 4;  // bytes; on x86-64 an instruction may have one

struct GoTable {
  struct Row {
    uint32_t entry = 0;     // from `text` on
    uint32_t function = 0;  // what is known of it; from `functions` on
  };

  uint64_t text = 0;   // address of the code
  uint64_t names = 0;  // offset of the functions' names
  uint64_t names_size = 0;
  uint64_t programs = 0;        // offset of what changes within functions; ends at `functions`
  uint64_t functions = 0;       // offset of the rows and what they lead to, up to the section's end
  uint8_t min_instruction = 1;  // unit of the programs; which one also tells the processor
  bool has_lines = false;       // a function tells the line of its beginning: from Go 1.20 on
  std::vector<Row> rows;        // in the order of addresses
  uint32_t end = 0;             // of the last function; from `text` on

  // Of the function of a row; 0 when it contradicts itself.
  uint32_t SizeOf(size_t row) const {
    const uint32_t next = row + 1 < rows.size() ? rows[row + 1].entry : end;
    return next > rows[row].entry ? next - rows[row].entry : 0;
  }
};

// Of `elf`, which has a go_pclntab.
Result<GoTable> ReadGoTable(const ByteSource& source, const ElfFile& elf);

}  // namespace flamefleet::agent
