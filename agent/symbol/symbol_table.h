// SPDX-License-Identifier: Apache-2.0
// SymbolTable: the functions of one ELF file by address, 8 bytes each; names stay in the file.
//
// The parsing child makes it (symbol_reader.h), the agent gets its bytes, checks them and looks up.
//
// Which name, when several fit (identical code that the linker folded, aliases, nested symbols):
//   - the function that begins last at or before the address and does not end before it;
//   - of functions that begin together: global before weak before local before untyped symbols,
//     then the first in the file;
//   - a symbol of size 0 reaches to the next one or to the end of its section, and names nothing
//     that a function with a size holds;
//   - where no symbol is, a function that call frame information knows is there without a name.
// Symbols of sections and files are no names.
//
// Thread: any; immutable. Bounds: kMaxFunctions (the first ones of the file), names of
// kMaxNameBytes. Errors: kDataLoss or kInvalidArgument when the bytes or the file are damaged.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/parse/wire.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr size_t kMaxFunctions = 1 << 20;  // librustc_driver has 93 thousand
constexpr size_t kMaxNameBytes = 4096;
constexpr size_t kMaxNameSources = 8;

class SymbolTable {
 public:
  // Up to the next one's address.
  struct Entry {
    uint32_t address = 0;  // from `base`
    uint32_t name = 0;     // a number for ReadName, or one of the two below
  };
  static constexpr uint32_t kNoFunction = UINT32_MAX;
  static constexpr uint32_t kUnnamed = UINT32_MAX - 1;

  // Where names are. Numbers of names count through the sources in their order.
  struct NameSource {
    uint32_t file = 0;  // which of the files that the table is of; kInTable: its own bytes
    uint32_t size = 0;
    uint64_t offset = 0;
  };
  static constexpr uint32_t kInTable = UINT32_MAX;

  struct Function {
    uint64_t start = 0;
    std::optional<uint32_t> name;
  };

  SymbolTable() = default;
  // `entries` in the order of addresses; `names` are those kept in the table.
  SymbolTable(uint64_t base, std::vector<Entry> entries, std::vector<NameSource> sources,
              std::string names);
  static Result<SymbolTable> Decode(ByteReader* reader);
  void Encode(ByteWriter* writer) const;

  // The function that holds the address, if any does.
  std::optional<Function> Find(uint64_t address) const;
  // `files` in the order they were given to the parser.
  Result<std::string> ReadName(std::span<const int> files, uint32_t name) const;

  size_t Bytes() const { return entries_.capacity() * sizeof(Entry) + names_.capacity(); }
  size_t size() const { return entries_.size(); }

 private:
  uint64_t base_ = 0;
  std::vector<Entry> entries_;
  std::vector<NameSource> sources_;
  std::string names_;
};

}  // namespace flamefleet::agent
