// SPDX-License-Identifier: Apache-2.0
// SymbolTable: the functions of one ELF file by address, 8 bytes each; names stay in the file.
//
// Which name, when several fit: the function that begins last at or before the address and does not
// end before it; of functions that begin together, global before weak before local, then the first
// in the file. A function of size 0 reaches to the next one or to the end of its section.
//
// Thread: any; immutable. Bounds: kMaxFunctions (the first ones of the file), names of
// kMaxNameBytes. Errors: kDataLoss or kInvalidArgument when the file is damaged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/symbol/elf_file.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr size_t kMaxFunctions = 1 << 20;  // librustc_driver has 93 thousand
constexpr size_t kMaxNameBytes = 4096;

class SymbolTable {
 public:
  SymbolTable() = default;
  static Result<SymbolTable> Read(int fd, const ElfFile& elf);

  // The number of the function's name, for ReadName; nothing when no function holds the address.
  std::optional<uint32_t> Find(uint64_t address) const;
  Result<std::string> ReadName(int fd, uint32_t name) const;

  size_t Bytes() const { return entries_.capacity() * sizeof(Entry); }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint32_t address = 0;  // from base_; up to the next entry's
    uint32_t name = 0;     // offset in the string section, or kNoName: no function here
  };
  struct Function;
  static constexpr uint32_t kNoName = UINT32_MAX;

  static Result<std::vector<Function>> ReadFunctions(int fd, const ElfFile& elf);
  void Build(std::vector<Function> functions, const ElfFile& elf);
  void Emit(uint64_t address, uint32_t name);

  uint64_t base_ = 0;
  uint64_t strings_offset_ = 0;
  uint64_t strings_size_ = 0;
  std::vector<Entry> entries_;  // in the order of addresses
};

}  // namespace flamefleet::agent
