// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/symbol_table.h"

#include <algorithm>
#include <utility>

#include "agent/symbol/byte_source.h"

namespace flamefleet::agent {

SymbolTable::SymbolTable(uint64_t base, std::vector<Entry> entries, std::vector<NameSource> sources,
                         std::string names)
    : base_(base),
      entries_(std::move(entries)),
      sources_(std::move(sources)),
      names_(std::move(names)) {
  entries_.shrink_to_fit();
}

void SymbolTable::Encode(ByteWriter* writer) const {
  writer->Fixed(base_);
  writer->Array(std::span(entries_));
  writer->Array(std::span(sources_));
  writer->Text(names_);
}

Result<SymbolTable> SymbolTable::Decode(ByteReader* reader) {
  const auto base = reader->Fixed<uint64_t>();
  std::vector<Entry> entries = reader->Array<Entry>();
  std::vector<NameSource> sources = reader->Array<NameSource>();
  std::string names(reader->Text());
  if (!reader->ok()) return DataLossError("decode symbols: too short");
  // Lookups rely on the order; each name is checked when it is read.
  if (!std::ranges::is_sorted(entries, {}, &Entry::address))
    return InvalidArgumentError("decode symbols: not in the order of addresses");
  if (sources.size() > kMaxNameSources)
    return InvalidArgumentError("decode symbols: too many sources of names");
  return SymbolTable(base, std::move(entries), std::move(sources), std::move(names));
}

std::optional<SymbolTable::Function> SymbolTable::Find(uint64_t address) const {
  if (address < base_ || address - base_ > UINT32_MAX) return std::nullopt;
  const auto next = std::ranges::upper_bound(entries_, static_cast<uint32_t>(address - base_), {},
                                             &Entry::address);
  if (next == entries_.begin()) return std::nullopt;
  const Entry& entry = *std::prev(next);
  if (entry.name == kNoFunction) return std::nullopt;
  Function function{.start = base_ + entry.address};
  if (entry.name != kUnnamed) function.name = entry.name;
  return function;
}

Result<std::string> SymbolTable::ReadName(std::span<const int> files, uint32_t name) const {
  uint64_t at = name;
  auto source = sources_.begin();
  while (source != sources_.end() && at >= source->size) {
    at -= source->size;
    ++source;
  }
  if (source == sources_.end())
    return InvalidArgumentError("read symbol name: outside its section");
  const bool in_table = source->file == kInTable;
  if (!in_table && source->file >= files.size())
    return InvalidArgumentError("read symbol name: of no file");
  const ByteSource bytes = in_table ? ByteSource(names_) : ByteSource(files[source->file]);
  // Most names are short: ask for a little first.
  for (size_t limit = 256; limit <= kMaxNameBytes; limit *= 4) {
    std::string text(static_cast<size_t>(std::min<uint64_t>(limit, source->size - at)), '\0');
    FF_RETURN_IF_ERROR(bytes.ReadInto(text, source->offset + at));
    const size_t end = text.find('\0');
    if (end == std::string::npos && text.size() == limit) continue;
    text.resize(std::min(end, text.size()));
    return text;
  }
  return InvalidArgumentError("read symbol name: longer than 4096 bytes");
}

}  // namespace flamefleet::agent
