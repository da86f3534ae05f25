// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/symbol/symbol_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLimit = 1 << 20;
  const flamefleet::Result<std::string> plain =
      flamefleet::agent::UnpackXz({reinterpret_cast<const char*>(data), size}, kLimit);
  FF_CHECK(!plain.ok() || plain->size() <= kLimit);
  return 0;
}
