// SPDX-License-Identifier: Apache-2.0
// WireReader: walks the fields of one protobuf message, without copying and without recursion.
// PutVarint writes a number in that form.
//
// Thread: none of its own; one owner.
// Errors: a message that ends inside a field, a varint over 10 bytes, field number 0 and the
//         deprecated group types end the walk: Next returns false and `damaged` is true.
// Source: https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flamefleet {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr int kVarintBits = 7;
constexpr size_t kMaxVarintBytes = 10;

inline void PutVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= kVarintBits)
    out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t varint = 0;     // kVarint
  std::string_view bytes;  // kBytes
};

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  // The next field; false at the end of the message or at damage.
  bool Next(WireField* field) {
    uint64_t tag = 0;
    if (rest_.empty() || damaged_ || !ReadVarint(&tag)) return false;
    field->number = static_cast<uint32_t>(tag >> 3);
    if (tag > UINT32_MAX || field->number == 0) return Damaged();
    field->type = static_cast<WireType>(tag & 7);
    switch (field->type) {
      case WireType::kVarint:
        return ReadVarint(&field->varint);
      case WireType::kFixed64:
        return Take(sizeof(uint64_t), &field->bytes);
      case WireType::kFixed32:
        return Take(sizeof(uint32_t), &field->bytes);
      case WireType::kBytes: {
        uint64_t size = 0;
        return ReadVarint(&size) && Take(size, &field->bytes);
      }
    }
    return Damaged();
  }

  // The next number of a packed field; false as in Next.
  bool NextPacked(uint64_t* value) { return !rest_.empty() && !damaged_ && ReadVarint(value); }

  bool damaged() const { return damaged_; }

 private:
  bool Damaged() {
    damaged_ = true;
    return false;
  }

  bool Take(uint64_t size, std::string_view* bytes) {
    if (size > rest_.size()) return Damaged();
    *bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  bool ReadVarint(uint64_t* value) {
    uint64_t result = 0;
    for (size_t i = 0; i < rest_.size() && i < kMaxVarintBytes; ++i) {
      const auto byte = static_cast<uint8_t>(rest_[i]);
      result |= static_cast<uint64_t>(byte & 0x7f) << (kVarintBits * i);
      if (byte < 0x80) {
        rest_.remove_prefix(i + 1);
        *value = result;
        return true;
      }
    }
    return Damaged();
  }

  std::string_view rest_;
  bool damaged_ = false;
};

}  // namespace flamefleet
