// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "agent/host/maps.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto maps = flamefleet::agent::ParseMaps({reinterpret_cast<const char*>(data), size});
  if (!maps.ok()) return 0;
  for (const flamefleet::agent::MapsEntry& entry : *maps)
    FF_CHECK(entry.start < entry.end);
  return 0;
}
