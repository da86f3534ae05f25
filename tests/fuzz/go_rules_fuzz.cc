// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/stack/go_rules.h"
#include "agent/stack/unwind_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  const ByteSource source(std::string_view(reinterpret_cast<const char*>(data), size));
  ElfFile elf;
  elf.go_pclntab = {.size = size};
  elf.text = {.size = UINT32_MAX, .address = 0x400000};
  const auto table = UnwindTable::Build(
      {}, 0, {}, [&](const CfiVisitor& visit) { return ReadGoRules(source, elf, visit); });
  if (!table.ok()) return 0;
  FF_CHECK(table->row_count() <= kMaxUnwindRows + 2 * kMaxUnwindPages);
  const uint64_t first = table->words()[0] << FF_UNWIND_PAGE_BITS;
  for (uint64_t address = first; address < first + (1 << 20); address += 97) {
    FF_CHECK(table->Find(address).cfa <= FF_CFA_OTHER_STACK);
  }
  return 0;
}
