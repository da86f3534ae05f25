// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <span>

#include "agent/stack/unwind_table.h"

namespace {

void Check(const flamefleet::Result<flamefleet::agent::UnwindTable>& table) {
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  if (!table.ok()) return;
  FF_CHECK(table->row_count() <= kMaxUnwindRows + 2 * kMaxUnwindPages);
  const uint64_t first = table->words()[0] << FF_UNWIND_PAGE_BITS;
  for (uint64_t address = first; address < first + (1 << 20); address += 97) {
    FF_CHECK(table->Find(address).cfa <= FF_CFA_OTHER_STACK);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using flamefleet::agent::UnwindTable;
  constexpr uint64_t kAddress = 0x2000;
  const auto bytes = std::as_bytes(std::span(data, size));
  Check(UnwindTable::Build(bytes, kAddress));
  Check(UnwindTable::Build({}, 0, bytes));  // as .debug_frame
  return 0;
}
