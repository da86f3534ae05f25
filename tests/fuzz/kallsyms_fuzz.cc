// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "agent/symbol/kernel_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto symbols =
      flamefleet::agent::KernelSymbols::Parse({reinterpret_cast<const char*>(data), size});
  if (!symbols.ok()) return 0;
  for (uint64_t address = 0xffffffff80000000; address < 0xfffffffff0000000; address += 0x3fffffff)
    FF_CHECK(symbols->Find(address).size() <= size);
  return 0;
}
