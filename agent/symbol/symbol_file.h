// SPDX-License-Identifier: Apache-2.0
// SymbolFile: names addresses of one mapped file; reads a name at its first use and keeps it.
//
// Thread: one owner. Bounds: memory is what Bytes() says; the owner evicts. Errors: a file that is
// not an ELF or damaged has no names and no build ID; that is all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "agent/host/mapped_file.h"
#include "agent/symbol/elf_file.h"
#include "agent/symbol/symbol_table.h"

namespace flamefleet::agent {

struct SymbolName {
  std::string name;         // demangled; UTF-8
  std::string system_name;  // as in the file; UTF-8
};

class SymbolFile {
 public:
  explicit SymbolFile(std::shared_ptr<const MappedFile> file);

  // The function at an offset of the file; null when none is known there. Valid as long as this.
  const SymbolName* Find(uint64_t file_offset);

  const std::string& build_id() const { return elf_.build_id; }
  size_t Bytes() const { return table_.Bytes() + name_bytes_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  ElfFile elf_;
  SymbolTable table_;
  std::unordered_map<uint32_t, SymbolName> names_;  // an unreadable one is empty
  size_t name_bytes_ = 0;
};

}  // namespace flamefleet::agent
