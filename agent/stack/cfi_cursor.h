// SPDX-License-Identifier: Apache-2.0
// CfiCursor: a DwarfCursor that reads the pointers of call frame information as well.
//
// Thread: one owner. Errors: a pointer of an unknown encoding gives 0 and makes ok() false for
// good. Source: Linux Standard Base Core, "DWARF Exception Header Encoding"
#pragma once

#include <cstdint>
#include <string_view>

#include "agent/symbol/dwarf_cursor.h"

namespace flamefleet::agent {

class CfiCursor : public DwarfCursor {
 public:
  // The first byte is at `address` of the file.
  CfiCursor(std::string_view bytes, uint64_t address) : DwarfCursor(bytes), address_(address) {}

  // 0 for an encoding that needs more than this section (indirect, relative to text).
  uint64_t Pointer(uint8_t encoding) {
    constexpr uint8_t kPcRelative = 0x10;
    const uint64_t base = address_ + at();
    const uint64_t value = Value(encoding & 0x0f);
    if ((encoding & 0xf0) == 0) return value;
    if ((encoding & 0xf0) == kPcRelative) return base + value;
    Fail();
    return 0;
  }

  // The same without what it is relative to: a length, or a pointer of no interest.
  uint64_t Value(uint8_t format) {
    switch (format) {
      case 0x00:  // address
      case 0x04:  // udata8
      case 0x0c:  // sdata8
        return Fixed(8);
      case 0x01:
        return Unsigned();
      case 0x02:
        return Fixed(2);
      case 0x03:
        return Fixed(4);
      case 0x09:
        return static_cast<uint64_t>(Signed());
      case 0x0a:
        return static_cast<uint64_t>(int64_t{static_cast<int16_t>(Fixed(2))});
      case 0x0b:
        return static_cast<uint64_t>(int64_t{static_cast<int32_t>(Fixed(4))});
      default:
        Fail();
        return 0;
    }
  }

 private:
  uint64_t address_;
};

}  // namespace flamefleet::agent
