// SPDX-License-Identifier: Apache-2.0
// ByteWriter and ByteReader: what the agent and its parsing child send each other, in this
// machine's byte order: both are of one build.
//
// The reader trusts nothing: a length that passes the end gives an empty value and makes ok() false
// for good, so check once after several reads.
//
// Thread: one owner.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace flamefleet::agent {

class ByteWriter {
 public:
  template <typename T>
  void Fixed(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void Text(std::string_view text) {
    Fixed(static_cast<uint32_t>(text.size()));
    bytes_.append(text);
  }
  template <typename T>
  void Array(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    Fixed(static_cast<uint32_t>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }

  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <typename T>
  T Fixed() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const std::string_view bytes = Take(sizeof(T));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  // Valid as long as what is read.
  std::string_view Text() { return Take(Fixed<uint32_t>()); }
  template <typename T>
  std::vector<T> Array() {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::string_view bytes = Take(uint64_t{Fixed<uint32_t>()} * sizeof(T));
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  bool ok() const { return ok_; }
  // Everything was read, and nothing was missing.
  bool Finished() const { return ok_ && rest_.empty(); }

 private:
  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view bytes = rest_.substr(0, static_cast<size_t>(size));
    rest_.remove_prefix(bytes.size());
    return bytes;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace flamefleet::agent
