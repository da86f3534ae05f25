// SPDX-License-Identifier: Apache-2.0
// DwarfCursor: reads the numbers and texts of DWARF out of bytes that may be anything: those of
// names and lines, and, with what agent/stack/cfi_cursor.h adds, those of call frames.
//
// A read beyond the end gives 0 or "" and makes ok() false for good, so check once after several.
//
// Thread: one owner. Source: DWARF 5, section 7.6 and 7.25
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace flamefleet::agent {

class DwarfCursor {
 public:
  DwarfCursor() = default;
  explicit DwarfCursor(std::string_view bytes, size_t at = 0) : bytes_(bytes) { MoveTo(at); }

  // Little-endian, of 1 to 8 bytes.
  uint64_t Fixed(size_t size) {
    uint64_t value = 0;
    if (!Has(size)) return 0;
    std::memcpy(&value, bytes_.data() + at_, size);
    at_ += size;
    return value;
  }
  uint8_t Byte() {
    if (at_ >= bytes_.size()) return static_cast<uint8_t>(Fixed(1));
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  // ULEB128; what does not fit in 64 bits is lost.
  uint64_t Unsigned() {
    uint64_t value = 0;
    for (unsigned shift = 0; at_ < bytes_.size(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      if (shift < 64) value |= uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    Fail();
    return 0;
  }
  int64_t Signed() {
    uint64_t value = 0;
    for (unsigned shift = 0; at_ < bytes_.size();) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      if (shift < 64) value |= uint64_t{byte & 0x7FU} << shift;
      shift += 7;
      if ((byte & 0x80) != 0) continue;
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
    Fail();
    return 0;
  }
  // Up to a NUL, which is passed. Valid as long as the bytes.
  std::string_view Text() {
    const size_t end = bytes_.find('\0', at_);
    if (end == std::string_view::npos) {
      Fail();
      return {};
    }
    const std::string_view text = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }
  // The next `size` bytes.
  std::string_view Block(uint64_t size) {
    if (!Has(size)) return {};
    const std::string_view block = bytes_.substr(at_, static_cast<size_t>(size));
    at_ += block.size();
    return block;
  }
  void Skip(uint64_t size) {
    if (Has(size)) at_ += static_cast<size_t>(size);
  }
  void MoveTo(uint64_t at) {
    if (at > bytes_.size()) return Fail();
    at_ = static_cast<size_t>(at);
  }

  size_t at() const { return at_; }
  bool AtEnd() const { return at_ >= bytes_.size(); }
  bool ok() const { return ok_; }

 protected:
  void Fail() {
    ok_ = false;
    at_ = bytes_.size();
  }

 private:
  bool Has(uint64_t size) {
    if (size <= bytes_.size() - at_) return true;
    Fail();
    return false;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace flamefleet::agent
