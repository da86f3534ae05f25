// SPDX-License-Identifier: Apache-2.0
// PieceReader: reads small pieces that come in about ascending order, by few reads.
//
// Thread: one owner; must not outlive `source`. Bounds: holds kWindow bytes. Errors: false for what
// is not between `begin` and `end` or cannot be read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "agent/symbol/byte_source.h"

namespace flamefleet::agent {

class PieceReader {
 public:
  PieceReader(const ByteSource& source, uint64_t begin, uint64_t end)
      : source_(source), begin_(begin), end_(end) {}

  // `offset` counts from `begin`.
  template <typename T>
  bool Read(uint64_t offset, T* piece) {
    if (offset > end_ - begin_ || sizeof(T) > end_ - begin_ - offset) return false;
    const uint64_t at = begin_ + offset;
    if (at < first_ || at + sizeof(T) > first_ + bytes_.size()) {
      bytes_.resize(static_cast<size_t>(std::min<uint64_t>(kWindow, end_ - at)));
      first_ = at;
      if (!source_.ReadInto(bytes_, at).ok()) {
        bytes_.clear();
        return false;
      }
    }
    std::memcpy(piece, bytes_.data() + (at - first_), sizeof(T));
    return true;
  }

 private:
  static constexpr size_t kWindow = 64 << 10;
  const ByteSource& source_;
  const uint64_t begin_;
  const uint64_t end_;
  uint64_t first_ = 0;
  std::vector<char> bytes_;
};

}  // namespace flamefleet::agent
