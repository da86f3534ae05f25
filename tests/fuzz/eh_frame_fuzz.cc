// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <span>

#include "agent/stack/unwind_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  constexpr uint64_t kAddress = 0x2000;
  const Result<UnwindTable> table =
      UnwindTable::Build(std::as_bytes(std::span(data, size)), kAddress);
  if (!table.ok()) return 0;
  FF_CHECK(table->row_count() <= kMaxUnwindRows + 2 * kMaxUnwindPages);
  const uint64_t first = table->words()[0] << FF_UNWIND_PAGE_BITS;
  for (uint64_t address = first; address < first + (1 << 20); address += 97) {
    FF_CHECK(table->Find(address).cfa <= FF_CFA_END);
  }
  return 0;
}
