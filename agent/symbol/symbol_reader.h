// SPDX-License-Identifier: Apache-2.0
// SymbolReader: collects the functions of a program from all that names them, and makes the table.
//
// Runs in the parsing child. Thread: one owner. Bounds: kMaxFunctions of all sources together,
// names below 4 GiB of them, sections of the constants below. Errors: kDataLoss or kInvalidArgument
// when a section is damaged; what was added before stays.
// Source: System V gABI, "Symbol Table"; Linux Standard Base, ".eh_frame_hdr"; Go's
// src/runtime/symtab.go (pcHeader, _func)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/symbol/byte_source.h"
#include "agent/symbol/elf_file.h"
#include "agent/symbol/symbol_table.h"

namespace flamefleet::agent {

constexpr size_t kMaxDebugDataBytes = 8 << 20;        // .gnu_debugdata, in xz
constexpr size_t kMaxDebugDataPlainBytes = 24 << 20;  // and unpacked
constexpr size_t kMaxKeptNamesBytes = 4 << 20;        // names of it, which are in no file

class SymbolReader {
 public:
  // Names from .symtab or .dynsym; `file` is its number for NameSource.
  Status AddSymbols(const ByteSource& source, uint32_t file, const ElfFile& elf,
                    const ElfFile::SymbolSection& symbols);
  Status AddGoFunctions(const ByteSource& source, uint32_t file, const ElfFile& elf);
  // The symbol table of .gnu_debugdata.
  Status AddDebugData(const ByteSource& source, const ElfFile& elf);
  // Starts of functions, without names.
  Status AddFrameStarts(const ByteSource& source, const ElfFile& elf);

  size_t size() const { return functions_.size(); }

  // The table of all that was added; the order of sources breaks ties. Call once.
  SymbolTable Build(const ElfFile& elf);

 private:
  struct Function {
    uint64_t address = 0;
    uint64_t size = 0;
    uint32_t name = 0;
    uint8_t rank = 0;  // the lowest names the place
  };
  // A new source of names; the number of its first, or nothing when all numbers are taken.
  std::optional<uint32_t> AddNames(uint32_t file, uint64_t offset, uint64_t size);
  void Add(const Function& function);

  std::vector<Function> functions_;
  std::vector<SymbolTable::NameSource> sources_;
  uint64_t names_end_ = 0;
  std::string kept_names_;
};

// What xz (LZMA2) data unpacks to. kResourceExhausted over `max_bytes` or too much memory.
Result<std::string> UnpackXz(std::string_view packed, size_t max_bytes);

}  // namespace flamefleet::agent
