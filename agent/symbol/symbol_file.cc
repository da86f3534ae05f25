// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/symbol_file.h"

#include <utility>

#include "agent/symbol/demangle.h"
#include "base/utf8.h"

namespace flamefleet::agent {

SymbolFile::SymbolFile(std::shared_ptr<const MappedFile> file)
    : SymbolFile({std::move(file)}, {}, std::make_shared<const SymbolTable>()) {}

SymbolFile::SymbolFile(std::vector<std::shared_ptr<const MappedFile>> files, ProgramSymbols symbols,
                       std::shared_ptr<const SymbolTable> table)
    : files_(std::move(files)), symbols_(std::move(symbols)), table_(std::move(table)) {}

SymbolFile::Place SymbolFile::Find(uint64_t file_offset) {
  Place place{.function_offset = file_offset};
  const std::optional<uint64_t> address = symbols_.AddressOfOffset(file_offset);
  if (!address) return place;
  const std::optional<SymbolTable::Function> function = table_->Find(*address);
  if (!function) return place;
  if (*address - function->start <= file_offset)
    place.function_offset = file_offset - (*address - function->start);
  if (function->name) place.name = NameOf(*function->name);
  return place;
}

const SymbolName* SymbolFile::NameOf(uint32_t number) {
  auto found = names_.find(number);
  if (found == names_.end()) {
    std::vector<int> fds;
    for (const std::shared_ptr<const MappedFile>& file : files_)
      fds.push_back(file->fd.get());
    SymbolName name;
    const Result<std::string> text = table_->ReadName(fds, number);
    if (text.ok()) {
      name.system_name = ToUtf8(*text);
      name.name = Demangle(name.system_name);
    }
    constexpr size_t kNodeBytes = 128;  // about what the map and two strings cost
    name_bytes_ += kNodeBytes + name.name.capacity() + name.system_name.capacity();
    found = names_.emplace(number, std::move(name)).first;
  }
  return found->second.name.empty() ? nullptr : &found->second;
}

size_t SymbolFile::Bytes() const {
  constexpr size_t kOwnBytes = 512;
  return kOwnBytes + name_bytes_ + table_->Bytes() / static_cast<size_t>(table_.use_count());
}

}  // namespace flamefleet::agent
