// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/symbol/demangle.h"
#include "base/status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using flamefleet::agent::kMaxDemangledBytes;
  const std::string name(reinterpret_cast<const char*>(data), size);
  FF_CHECK(flamefleet::agent::Demangle(name).size() <= std::max(size, kMaxDemangledBytes));
  return 0;
}
