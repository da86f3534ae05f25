// SPDX-License-Identifier: Apache-2.0
// WireWriter: protobuf bytes, field by field, right or wrong, for tests of what reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flamefleet {

class WireWriter {
 public:
  WireWriter& Bytes(uint32_t number, std::string_view value) {
    Varint(number << 3 | 2);
    Varint(value.size());
    text_ += value;
    return *this;
  }
  WireWriter& Number(uint32_t number, uint64_t value) {
    Varint(number << 3);
    Varint(value);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }

  std::string text_;
};

}  // namespace flamefleet
