// SPDX-License-Identifier: Apache-2.0
// ParseKind::kSymbols: the functions of a program, with what else naming its addresses needs.
//
// AnswerSymbols runs in the parsing child; the agent asks with RequestSymbols and gets what was
// checked.
//
// Thread: any. Bounds: symbol_reader.h, elf_file.h. Errors: of Request, those of
// ParserProcess::Run; kInvalidArgument also for a debug file of another program.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/parse/parser_process.h"
#include "agent/symbol/elf_file.h"
#include "agent/symbol/symbol_table.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr size_t kMaxDebugLinkBytes = 255;  // NAME_MAX

// What dwz moved out of a debug file, since others share it.
struct AlternateLink {
  std::string path;      // as in .gnu_debugaltlink; "" when there is none
  std::string build_id;  // hexadecimal
};

struct ProgramSymbols {
  struct Segment {  // PT_LOAD
    uint64_t offset = 0;
    uint64_t size = 0;  // in the file
    uint64_t address = 0;
  };
  // The address that the file gives to the byte at `offset` of it.
  std::optional<uint64_t> AddressOfOffset(uint64_t offset) const;

  std::vector<Segment> segments;
  std::string build_id;     // hexadecimal; "" when there is none
  std::string debug_link;   // name of a file that has the symbols; a name without '/', or ""
  bool has_symtab = false;  // the table is complete: no debug file is needed for names
  std::optional<uint32_t> dwarf_file;  // which of the files has DWARF
  AlternateLink alternate;             // of that file
  SymbolTable table;
};

// In the child. Files: the program and, optionally, its debug file, which must have the program's
// build ID or, without one, the checksum of its .gnu_debuglink.
Result<std::string> AnswerSymbols(std::span<const int> files, std::string_view arguments);

// Empty when there is none, or a damaged one.
AlternateLink ReadAlternateLink(const ByteSource& source, const ElfFile& elf);

// In the agent. `encoded` gets what was answered, for comparing.
Result<ProgramSymbols> RequestSymbols(ParserProcess* parser, std::span<const int> files,
                                      std::string* encoded);

// Checked as if it came from the file itself.
Result<ProgramSymbols> DecodeSymbols(std::string_view encoded);

}  // namespace flamefleet::agent
