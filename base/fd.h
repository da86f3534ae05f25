// SPDX-License-Identifier: Apache-2.0
// File descriptors that close themselves, and bounded reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace flamefleet {

// Owns a descriptor; -1 is none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// Opens with O_CLOEXEC added; the error names the path.
Result<UniqueFd> OpenFile(const std::string& path, int flags, unsigned mode = 0);

// The whole file, which may be one of /proc (size 0). kResourceExhausted when it holds more than
// max_bytes.
Result<std::string> ReadFile(const std::string& path, size_t max_bytes);
Result<std::string> ReadFd(int fd, size_t max_bytes, const std::string& name);

// Fills `buffer` from `offset` or fails (kDataLoss at the end of the file); never moves the file
// position.
Status PreadExact(int fd, std::span<std::byte> buffer, uint64_t offset);

// In as many calls as that takes; some of it may be written when it fails. `name` is for the error.
Status WriteAll(int fd, std::span<const char> bytes, const std::string& name);

// Writes all of it, then renames over `path`: a reader sees the old or the new file. Not synced to
// disk.
Status WriteFileAtomically(const std::string& path, std::span<const char> content, unsigned mode);

}  // namespace flamefleet
