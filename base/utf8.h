// SPDX-License-Identifier: Apache-2.0
// IsUtf8: what protobuf's `string`, JSON and Prometheus labels demand. Thread: any.
// Source: table 3-7 of the Unicode Standard (well-formed UTF-8 byte sequences).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace flamefleet {

inline bool IsUtf8(std::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<uint8_t>(text[i]); };
  size_t i = 0;
  while (i < text.size()) {
    const uint8_t lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    if (lead < 0xc2 || lead > 0xf4) return false;
    const size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (text.size() - i < size) return false;
    // The second byte has a narrower range after four leads: no overlong forms, no surrogates,
    // nothing over U+10FFFF.
    const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(i + 1) < low || byte(i + 1) > high) return false;
    for (size_t k = 2; k < size; ++k) {
      if (byte(i + k) < 0x80 || byte(i + k) > 0xbf) return false;
    }
    i += size;
  }
  return true;
}

}  // namespace flamefleet
