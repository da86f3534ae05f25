// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/symbol_file.h"

#include "agent/symbol/demangle.h"
#include "base/utf8.h"

namespace flamefleet::agent {

SymbolFile::SymbolFile(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {
  Result<ElfFile> elf = ReadElfFile(file_->fd.get());
  if (!elf.ok()) return;
  elf_ = *std::move(elf);
  Result<SymbolTable> table = SymbolTable::Read(file_->fd.get(), elf_);
  if (table.ok()) table_ = *std::move(table);
}

const SymbolName* SymbolFile::Find(uint64_t file_offset) {
  const std::optional<uint64_t> address = elf_.AddressOfOffset(file_offset);
  if (!address) return nullptr;
  const std::optional<uint32_t> number = table_.Find(*address);
  if (!number) return nullptr;
  auto found = names_.find(*number);
  if (found == names_.end()) {
    SymbolName name;
    const Result<std::string> text = table_.ReadName(file_->fd.get(), *number);
    if (text.ok()) {
      name.system_name = ToUtf8(*text);
      name.name = Demangle(name.system_name);
    }
    constexpr size_t kNodeBytes = 128;  // about what the map and two strings cost
    name_bytes_ += kNodeBytes + name.name.capacity() + name.system_name.capacity();
    found = names_.emplace(*number, std::move(name)).first;
  }
  return found->second.name.empty() ? nullptr : &found->second;
}

}  // namespace flamefleet::agent
