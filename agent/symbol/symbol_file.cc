// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/symbol_file.h"

#include <utility>

#include "agent/symbol/demangle.h"
#include "base/utf8.h"

namespace flamefleet::agent {

SymbolFile::SymbolFile(std::shared_ptr<const MappedFile> file)
    : SymbolFile({std::move(file)}, {}, std::make_shared<const SymbolTable>(), nullptr) {}

SymbolFile::SymbolFile(std::vector<std::shared_ptr<const MappedFile>> files, ProgramSymbols symbols,
                       std::shared_ptr<const SymbolTable> table,
                       std::shared_ptr<const MappedFile> alternate)
    : files_(std::move(files)),
      symbols_(std::move(symbols)),
      table_(std::move(table)),
      alternate_(std::move(alternate)) {}

SymbolFile::Place SymbolFile::Find(uint64_t file_offset, NameBudget* budget) {
  Place place{.function_offset = file_offset};
  const std::optional<uint64_t> address = symbols_.AddressOfOffset(file_offset);
  if (!address) return place;
  const std::optional<SymbolTable::Function> function = table_->Find(*address);
  if (!function) return place;
  if (*address - function->start <= file_offset)
    place.function_offset = file_offset - (*address - function->start);
  if (function->name) place.name = NameOf(*function->name, budget);
  return place;
}

const SymbolName* SymbolFile::NameOf(uint32_t number, NameBudget* budget) {
  auto found = names_.find(number);
  if (found == names_.end()) {
    if (name_bytes_ >= kMaxNameBytesOfFile || !budget->HasRoom()) {
      budget->CountRefused();
      return nullptr;
    }
    std::vector<int> fds;
    for (const std::shared_ptr<const MappedFile>& file : files_)
      fds.push_back(file->fd.get());
    SymbolName name;
    const Result<std::string> text = table_->ReadName(fds, number);
    if (text.ok()) {
      name.system_name = ToUtf8(*text);
      // Without the version that static symbols of libraries end in.
      name.name = Demangle(name.system_name.substr(0, name.system_name.find("@@")));
    }
    constexpr size_t kNodeBytes = 128;  // about what the map and two strings cost
    const size_t bytes = kNodeBytes + name.name.capacity() + name.system_name.capacity();
    name_bytes_ += bytes;
    budget->Take(bytes);
    found = names_.emplace(number, std::move(name)).first;
  }
  return found->second.name.empty() ? nullptr : &found->second;
}

void SymbolFile::EndWindow() {
  if (name_bytes_ < kMaxNameBytesOfFile / 2) return;
  names_.clear();
  name_bytes_ = 0;
}

void SymbolFile::WantLines(uint64_t file_offset) {
  if (!symbols_.dwarf_file || *symbols_.dwarf_file >= files_.size()) return;
  if (const std::optional<uint64_t> address = symbols_.AddressOfOffset(file_offset))
    lines_.Want(*address);
}

void SymbolFile::ResolveLines(ParserProcess* parser, std::chrono::nanoseconds budget,
                              NameBudget* names, LineCounts* counts) {
  if (budget.count() <= 0) return lines_.GiveUpWanted(counts);
  std::vector<int> fds = {files_[*symbols_.dwarf_file]->fd.get()};
  if (alternate_) fds.push_back(alternate_->fd.get());
  lines_.Resolve(parser, fds, budget, names, counts);
}

std::span<const FileLines::Frame> SymbolFile::LinesOf(uint64_t file_offset) const {
  const std::optional<uint64_t> address = symbols_.AddressOfOffset(file_offset);
  return address ? lines_.Find(*address) : std::span<const FileLines::Frame>();
}

size_t SymbolFile::Bytes() const {
  constexpr size_t kOwnBytes = 512;
  return kOwnBytes + name_bytes_ + lines_.Bytes() +
         table_->Bytes() / static_cast<size_t>(table_.use_count());
}

}  // namespace flamefleet::agent
