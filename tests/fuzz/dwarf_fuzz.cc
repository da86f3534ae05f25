// SPDX-License-Identifier: Apache-2.0
// The DWARF of a file: units, entries, ranges, lines, inlined functions, compressed sections.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "agent/symbol/dwarf_lookup.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  const ByteSource source({reinterpret_cast<const char*>(data), size});
  const Result<ElfFile> elf = ReadElfFile(source);
  if (!elf.ok() || !elf->has_dwarf()) return 0;
  Result<DwarfSections> sections = DwarfSections::Open(source, *elf);
  if (!sections.ok()) return 0;
  WorkBudget budget(200'000'000);
  // The file is its own other one.
  Result<DwarfSections> others = DwarfSections::Open(source, *elf);
  DwarfFile reader(*std::move(sections), &budget);
  DwarfFile alternate(*std::move(others), &budget);
  std::vector<uint64_t> addresses;
  for (const ElfFile::AddressRange& range : elf->code) {
    for (uint64_t i = 0; i < 64 && range.start + i * 7 < range.end; ++i)
      addresses.push_back(range.start + i * 7);
  }
  std::ranges::sort(addresses);
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  if (addresses.size() > 4096) addresses.resize(4096);
  DwarfLookup(&reader, &alternate).Find(addresses);
  return 0;
}
