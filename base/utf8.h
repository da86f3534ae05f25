// SPDX-License-Identifier: Apache-2.0
// UTF-8: what protobuf's `string`, JSON and Prometheus labels demand. Thread: any.
// Source: table 3-7 of the Unicode Standard (well-formed UTF-8 byte sequences).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flamefleet {

// How many bytes the well-formed sequence at the front of `text` has; 0 when there is none.
inline size_t Utf8SequenceSize(std::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (text.empty()) return 0;
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < size) return 0;
  // The second byte has a narrower range after four leads: no overlong forms, no surrogates,
  // nothing over U+10FFFF.
  const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t k = 2; k < size; ++k) {
    if (byte(k) < 0x80 || byte(k) > 0xbf) return 0;
  }
  return size;
}

inline bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = Utf8SequenceSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

// The text with each byte that is not part of well-formed UTF-8 replaced by '?'.
inline std::string ToUtf8(std::string_view bytes) {
  std::string text(bytes);
  for (size_t i = 0; i < text.size();) {
    const size_t size = Utf8SequenceSize(bytes.substr(i));
    if (size == 0) text[i] = '?';
    i += size == 0 ? 1 : size;
  }
  return text;
}

// At most `size` bytes of UTF-8, cut between characters.
inline std::string CutUtf8(std::string text, size_t size) {
  if (text.size() <= size) return text;
  while (size > 0 && (static_cast<uint8_t>(text[size]) & 0xc0) == 0x80)
    --size;
  text.resize(size);
  return text;
}

}  // namespace flamefleet
