// SPDX-License-Identifier: Apache-2.0
// DwarfReader: takes the basic types of DWARF off the front of a piece of memory.
//
// Thread: one owner. Errors: reading past the end, or a pointer of an unknown encoding, gives 0 and
// makes ok() false for good: check once after several reads.
// Source: DWARF 5, 7.6 (LEB128); Linux Standard Base Core, "DWARF Exception Header Encoding"
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace flamefleet::agent {

class DwarfReader {
 public:
  // The first byte is at `address` of the file.
  DwarfReader(std::span<const std::byte> bytes, uint64_t address)
      : bytes_(bytes), address_(address) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return at_ == bytes_.size(); }
  size_t position() const { return at_; }

  template <typename T>
  T Fixed() {
    T value{};
    if (bytes_.size() - at_ < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  uint64_t Uleb() {
    int shift = 0;
    return LebBits(&shift);
  }

  int64_t Sleb() {
    int shift = 0;
    uint64_t value = LebBits(&shift);
    const bool negative = shift > 0 && ok_ && (Last() & 0x40) != 0;
    if (negative && shift < 64) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }

  // The next `size` bytes.
  std::span<const std::byte> Block(uint64_t size) {
    if (size > bytes_.size() - at_) {
      Fail();
      return {};
    }
    const auto block = bytes_.subspan(at_, static_cast<size_t>(size));
    at_ += static_cast<size_t>(size);
    return block;
  }

  // A pointer; 0 for an encoding that needs more than this section (indirect, relative to text).
  uint64_t Pointer(uint8_t encoding) {
    constexpr uint8_t kPcRelative = 0x10;
    const uint64_t base = address_ + at_;
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
        return Fixed<uint64_t>();
      case 0x01:
        return Uleb();
      case 0x02:
        return Fixed<uint16_t>();
      case 0x03:
        return Fixed<uint32_t>();
      case 0x09:
        return static_cast<uint64_t>(Sleb());
      case 0x0a:
        return static_cast<uint64_t>(int64_t{Fixed<int16_t>()});
      case 0x0b:
        return static_cast<uint64_t>(int64_t{Fixed<int32_t>()});
      default:
        Fail();
        return 0;
    }
  }

 private:
  void Fail() {
    ok_ = false;
    at_ = bytes_.size();
  }

  uint8_t Last() const { return static_cast<uint8_t>(bytes_[at_ - 1]); }

  // Bits beyond 64 are dropped.
  uint64_t LebBits(int* shift) {
    uint64_t value = 0;
    for (;;) {
      const auto byte = Fixed<uint8_t>();
      if (!ok_) return 0;
      if (*shift < 64) value |= uint64_t{byte & 0x7fu} << *shift;
      if (*shift < 64) *shift += 7;
      if ((byte & 0x80) == 0) return value;
    }
  }

  std::span<const std::byte> bytes_;
  uint64_t address_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace flamefleet::agent
