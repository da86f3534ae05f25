// SPDX-License-Identifier: Apache-2.0
// ByteSource: where a parser reads: a file, by pread, or memory.
//
// Thread: any. Errors: kDataLoss at the end. Does not own what it reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace flamefleet::agent {

class ByteSource {
 public:
  explicit ByteSource(int fd) : fd_(fd) {}
  explicit ByteSource(std::string_view memory) : memory_(memory) {}

  Status ReadExact(std::span<std::byte> buffer, uint64_t offset) const {
    if (fd_ >= 0) return PreadExact(fd_, buffer, offset);
    if (offset > memory_.size() || buffer.size() > memory_.size() - offset)
      return DataLossError("read: shorter than it says");
    if (!buffer.empty()) std::memcpy(buffer.data(), memory_.data() + offset, buffer.size());
    return OkStatus();
  }

  // Fills `items`.
  template <typename Container>
  Status ReadInto(Container& items, uint64_t offset) const {
    return ReadExact(std::as_writable_bytes(std::span(items)), offset);
  }

 private:
  int fd_ = -1;
  std::string_view memory_;
};

}  // namespace flamefleet::agent
