// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/symbol_table.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <span>
#include <tuple>

#include "base/fd.h"

namespace flamefleet::agent {

struct SymbolTable::Function {
  uint64_t address = 0;
  uint64_t size = 0;
  uint32_t name = 0;
  uint8_t rank = 0;  // 0 global, 1 weak, 2 local
};

namespace {

constexpr size_t kChunkSymbols = 2048;  // 48 KiB per read

uint8_t RankOf(const Elf64_Sym& symbol) {
  switch (ELF64_ST_BIND(symbol.st_info)) {
    case STB_LOCAL:
      return 2;
    case STB_WEAK:
      return 1;
    default:
      return 0;
  }
}

bool IsFunction(const Elf64_Sym& symbol) {
  const int type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF &&
         symbol.st_value != 0;
}

// The end of the executable section that holds the address; the address itself when none does.
uint64_t SectionEnd(const ElfFile& elf, uint64_t address) {
  for (const ElfFile::AddressRange& range : elf.code) {
    if (address >= range.start && address < range.end) return range.end;
  }
  return address;
}

}  // namespace

Result<std::vector<SymbolTable::Function>> SymbolTable::ReadFunctions(int fd, const ElfFile& elf) {
  std::vector<Function> functions;
  std::array<Elf64_Sym, kChunkSymbols> chunk;
  const ElfFile::SymbolSection& section = *elf.symbols;
  for (uint64_t first = 0; first < section.count && functions.size() < kMaxFunctions;) {
    const size_t count =
        static_cast<size_t>(std::min<uint64_t>(kChunkSymbols, section.count - first));
    FF_RETURN_IF_ERROR(PreadExact(fd, std::as_writable_bytes(std::span(chunk).first(count)),
                                  section.offset + first * sizeof(Elf64_Sym)));
    for (const Elf64_Sym& symbol : std::span(chunk).first(count)) {
      if (!IsFunction(symbol) || functions.size() >= kMaxFunctions) continue;
      functions.push_back({.address = symbol.st_value,
                           .size = symbol.st_size,
                           .name = symbol.st_name,
                           .rank = RankOf(symbol)});
    }
    first += count;
  }
  return functions;
}

Result<SymbolTable> SymbolTable::Read(int fd, const ElfFile& elf) {
  SymbolTable table;
  if (!elf.symbols) return table;
  table.strings_offset_ = elf.symbols->strings_offset;
  table.strings_size_ = std::min<uint64_t>(elf.symbols->strings_size, kNoName);
  FF_ASSIGN_OR_RETURN(std::vector<Function> functions, ReadFunctions(fd, elf));
  table.Build(std::move(functions), elf);
  return table;
}

void SymbolTable::Emit(uint64_t address, uint32_t name) {
  if (address - base_ > UINT32_MAX) return;  // beyond 4 GiB of code: no names
  const auto relative = static_cast<uint32_t>(address - base_);
  if (!entries_.empty() && entries_.back().name == name) return;
  if (!entries_.empty() && entries_.back().address == relative)
    entries_.back().name = name;
  else
    entries_.push_back({relative, name});
}

void SymbolTable::Build(std::vector<Function> functions, const ElfFile& elf) {
  std::ranges::stable_sort(functions, {},
                           [](const Function& f) { return std::tuple(f.address, f.rank); });
  const auto same_start = [](const Function& a, const Function& b) {
    return a.address == b.address;
  };
  functions.erase(std::unique(functions.begin(), functions.end(), same_start), functions.end());
  if (functions.empty()) return;
  base_ = functions.front().address;

  // Functions whose end is still ahead, the innermost last.
  std::vector<std::pair<uint64_t, uint32_t>> open;  // end, name
  const auto close_until = [this, &open](uint64_t address) {
    while (!open.empty() && open.back().first <= address) {
      const uint64_t end = open.back().first;
      while (!open.empty() && open.back().first <= end)
        open.pop_back();
      if (end < address) Emit(end, open.empty() ? kNoName : open.back().second);
    }
  };
  for (size_t i = 0; i < functions.size(); ++i) {
    const Function& function = functions[i];
    const uint64_t next = i + 1 < functions.size() ? functions[i + 1].address : UINT64_MAX;
    const uint64_t end = function.size > 0 && function.size <= UINT64_MAX - function.address
                             ? function.address + function.size
                             : std::min(next, SectionEnd(elf, function.address));
    close_until(function.address);
    if (end <= function.address) continue;
    Emit(function.address, function.name);
    open.emplace_back(end, function.name);
  }
  close_until(UINT64_MAX);
  entries_.shrink_to_fit();
}

std::optional<uint32_t> SymbolTable::Find(uint64_t address) const {
  if (address < base_ || address - base_ > UINT32_MAX) return std::nullopt;
  const auto next = std::ranges::upper_bound(entries_, static_cast<uint32_t>(address - base_), {},
                                             &Entry::address);
  if (next == entries_.begin()) return std::nullopt;
  const uint32_t name = std::prev(next)->name;
  if (name == kNoName) return std::nullopt;
  return name;
}

Result<std::string> SymbolTable::ReadName(int fd, uint32_t name) const {
  if (name >= strings_size_) return InvalidArgumentError("read symbol name: outside its section");
  // Most names are short: ask for a little first.
  for (size_t limit = 256; limit <= kMaxNameBytes; limit *= 4) {
    std::string text(static_cast<size_t>(std::min<uint64_t>(limit, strings_size_ - name)), '\0');
    FF_RETURN_IF_ERROR(
        PreadExact(fd, std::as_writable_bytes(std::span(text)), strings_offset_ + name));
    const size_t end = text.find('\0');
    if (end == std::string::npos && text.size() == limit) continue;
    text.resize(std::min(end, text.size()));
    return text;
  }
  return InvalidArgumentError("read symbol name: longer than 4096 bytes");
}

}  // namespace flamefleet::agent
