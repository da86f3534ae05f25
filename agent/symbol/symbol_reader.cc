// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/symbol_reader.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <tuple>
#include <utility>

namespace flamefleet::agent {
namespace {

constexpr size_t kChunkSymbols = 2048;  // 48 KiB per read

constexpr uint8_t kUntypedRank = 3;
constexpr uint8_t kUnnamedRank = 4;

bool IsCode(const ElfFile& elf, uint64_t address) {
  return std::ranges::any_of(elf.code, [address](const ElfFile::AddressRange& range) {
    return address >= range.start && address < range.end;
  });
}

// The rank of a symbol that names code; nothing for any other.
std::optional<uint8_t> RankOf(const Elf64_Sym& symbol, const ElfFile& elf) {
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || symbol.st_name == 0)
    return std::nullopt;
  const int type = ELF64_ST_TYPE(symbol.st_info);
  // Assembler code without .type; not so data.
  if (type == STT_NOTYPE && IsCode(elf, symbol.st_value)) return kUntypedRank;
  if (type != STT_FUNC && type != STT_GNU_IFUNC) return std::nullopt;
  switch (ELF64_ST_BIND(symbol.st_info)) {
    case STB_LOCAL:
      return 2;
    case STB_WEAK:
      return 1;
    default:
      return 0;
  }
}

// The end of the executable section that holds the address; the address itself when none does.
uint64_t SectionEnd(const ElfFile& elf, uint64_t address) {
  for (const ElfFile::AddressRange& range : elf.code) {
    if (address >= range.start && address < range.end) return range.end;
  }
  return address;
}

// Puts functions that come in the order of addresses into entries of a table.
class EntryWriter {
 public:
  explicit EntryWriter(uint64_t base) : base_(base) {}

  void Start(uint64_t address, uint64_t end, uint32_t name) {
    CloseUntil(address);
    if (end <= address) return;
    Emit(address, name, /*is_start=*/true);
    open_.emplace_back(end, name);
  }
  // Whether a function that has begun reaches beyond the address.
  bool Covers(uint64_t address) {
    CloseUntil(address);
    return !open_.empty();
  }
  std::vector<SymbolTable::Entry> Finish() {
    CloseUntil(UINT64_MAX);
    return std::move(entries_);
  }

 private:
  void CloseUntil(uint64_t address) {
    while (!open_.empty() && open_.back().first <= address) {
      const uint64_t end = open_.back().first;
      while (!open_.empty() && open_.back().first <= end)
        open_.pop_back();
      Emit(end, open_.empty() ? SymbolTable::kNoFunction : open_.back().second, false);
    }
  }
  void Emit(uint64_t address, uint32_t name, bool is_start) {
    if (address - base_ > UINT32_MAX) return;  // beyond 4 GiB of code: no names
    const auto relative = static_cast<uint32_t>(address - base_);
    // What ended just here has no entry of its own. Two unnamed functions are two, a function that
    // goes on behind a nested one is one.
    if (!entries_.empty() && entries_.back().address == relative)
      entries_.back().name = name;
    else if (is_start || entries_.empty() || entries_.back().name != name)
      entries_.push_back({relative, name});
  }

  const uint64_t base_;
  std::vector<SymbolTable::Entry> entries_;
  std::vector<std::pair<uint64_t, uint32_t>> open_;  // end and name, the innermost last
};

}  // namespace

std::optional<uint32_t> SymbolReader::AddNames(uint32_t file, uint64_t offset, uint64_t size) {
  const uint64_t first = names_end_;
  if (size >= SymbolTable::kUnnamed - first || sources_.size() == kMaxNameSources)
    return std::nullopt;
  sources_.push_back({.file = file, .size = static_cast<uint32_t>(size), .offset = offset});
  names_end_ += size;
  return static_cast<uint32_t>(first);
}

void SymbolReader::Add(const Function& function) {
  if (functions_.size() < kMaxFunctions) functions_.push_back(function);
}

Status SymbolReader::AddSymbols(const ByteSource& source, uint32_t file, const ElfFile& elf,
                                const ElfFile::SymbolSection& symbols) {
  const std::optional<uint32_t> first_name =
      AddNames(file, symbols.strings_offset, symbols.strings_size);
  if (!first_name) return ResourceExhaustedError("read symbols: too many names");
  std::array<Elf64_Sym, kChunkSymbols> chunk;
  for (uint64_t first = 0; first < symbols.count && functions_.size() < kMaxFunctions;) {
    const auto count =
        static_cast<size_t>(std::min<uint64_t>(kChunkSymbols, symbols.count - first));
    const std::span<Elf64_Sym> some = std::span(chunk).first(count);
    FF_RETURN_IF_ERROR(source.ReadInto(some, symbols.offset + first * sizeof(Elf64_Sym)));
    for (const Elf64_Sym& symbol : some) {
      const std::optional<uint8_t> rank = RankOf(symbol, elf);
      if (!rank || symbol.st_name >= symbols.strings_size) continue;
      Add({.address = symbol.st_value,
           .size = symbol.st_size,
           .name = *first_name + symbol.st_name,
           .rank = *rank});
    }
    first += count;
  }
  return OkStatus();
}

Status SymbolReader::AddDebugData(const ByteSource& source, const ElfFile& elf) {
  if (elf.gnu_debugdata->size > kMaxDebugDataBytes)
    return ResourceExhaustedError("read .gnu_debugdata: over 8 MiB");
  std::string packed(elf.gnu_debugdata->size, '\0');
  FF_RETURN_IF_ERROR(source.ReadInto(packed, elf.gnu_debugdata->offset));
  FF_ASSIGN_OR_RETURN(const std::string plain, UnpackXz(packed, kMaxDebugDataPlainBytes));
  const ByteSource inner(plain);
  FF_ASSIGN_OR_RETURN(const ElfFile inner_elf, ReadElfFile(inner));
  if (!inner_elf.symtab) return OkStatus();
  const ElfFile::SymbolSection& symbols = *inner_elf.symtab;
  if (symbols.strings_size > kMaxKeptNamesBytes)
    return ResourceExhaustedError("read .gnu_debugdata: over 4 MiB of names");
  kept_names_.resize(symbols.strings_size);
  FF_RETURN_IF_ERROR(inner.ReadInto(kept_names_, symbols.strings_offset));
  ElfFile::SymbolSection kept = symbols;
  kept.strings_offset = 0;
  // Of the outer file: where its code is.
  return AddSymbols(inner, SymbolTable::kInTable, elf, kept);
}

Status SymbolReader::AddFrameStarts(const ByteSource& source, const ElfFile& elf) {
  struct Header {
    uint8_t version, pointer_encoding, count_encoding, table_encoding;
    int32_t pointer;
    uint32_t count;
  };
  struct Row {
    int32_t start, entry;  // from the start of the section
  };
  const ElfFile::Section& section = *elf.eh_frame_hdr;
  Header header;
  FF_RETURN_IF_ERROR(
      source.ReadExact(std::as_writable_bytes(std::span(&header, 1)), section.offset));
  // The one form that linkers write: a 4-byte pointer, a 4-byte count, a sorted table of pairs.
  constexpr uint8_t kUdata4 = 0x03;
  constexpr uint8_t kSdata4OfSection = 0x3b;
  if (header.version != 1 || (header.pointer_encoding & 0x0f) != 0x0b ||
      header.count_encoding != kUdata4 || header.table_encoding != kSdata4OfSection)
    return InvalidArgumentError("read .eh_frame_hdr: of an unknown form");
  if (header.count > kMaxFunctions || header.count * sizeof(Row) > section.size)
    return InvalidArgumentError("read .eh_frame_hdr: longer than it is");
  std::vector<Row> rows(header.count);
  FF_RETURN_IF_ERROR(source.ReadInto(rows, section.offset + sizeof(Header)));
  for (const Row& row : rows) {
    Add({.address = section.address + static_cast<uint64_t>(int64_t{row.start}),
         .name = SymbolTable::kUnnamed,
         .rank = kUnnamedRank});
  }
  return OkStatus();
}

SymbolTable SymbolReader::Build(const ElfFile& elf) {
  std::ranges::stable_sort(functions_, {},
                           [](const Function& f) { return std::tuple(f.address, f.rank); });
  const auto same_start = [](const Function& a, const Function& b) {
    return a.address == b.address;
  };
  functions_.erase(std::unique(functions_.begin(), functions_.end(), same_start), functions_.end());
  if (functions_.empty()) return {};
  const uint64_t base = functions_.front().address;
  EntryWriter writer(base);
  for (size_t i = 0; i < functions_.size(); ++i) {
    const Function& function = functions_[i];
    const bool has_size = function.size > 0 && function.size <= UINT64_MAX - function.address;
    if (!has_size && writer.Covers(function.address)) continue;
    const uint64_t next = i + 1 < functions_.size() ? functions_[i + 1].address : UINT64_MAX;
    const uint64_t end = has_size ? function.address + function.size
                                  : std::min(next, SectionEnd(elf, function.address));
    writer.Start(function.address, end, function.name);
  }
  functions_ = {};
  return {base, writer.Finish(), std::move(sources_), std::move(kept_names_)};
}

}  // namespace flamefleet::agent
