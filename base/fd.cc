// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace flamefleet {

void UniqueFd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<UniqueFd> OpenFile(const std::string& path, int flags, unsigned mode) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!fd.ok()) return ErrnoError(errno, "open " + path);
  return fd;
}

Result<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  FF_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDONLY));
  return ReadFd(fd.get(), max_bytes, path);
}

Result<std::string> ReadFd(int fd, size_t max_bytes, const std::string& name) {
  constexpr size_t kChunk = 64 << 10;
  std::string content;
  for (;;) {
    const size_t used = content.size();
    content.resize(std::min(used + kChunk, max_bytes + 1));
    const ssize_t got = ::read(fd, content.data() + used, content.size() - used);
    if (got < 0 && errno == EINTR) {
      content.resize(used);
      continue;
    }
    if (got < 0) return ErrnoError(errno, "read " + name);
    content.resize(used + static_cast<size_t>(got));
    if (content.size() > max_bytes) {
      return ResourceExhaustedError("read " + name + ": more than " + std::to_string(max_bytes) +
                                    " bytes");
    }
    if (got == 0) return content;
  }
}

Status PreadExact(int fd, std::span<std::byte> buffer, uint64_t offset) {
  while (!buffer.empty()) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "pread at " + std::to_string(offset));
    if (got == 0) return DataLossError("pread at " + std::to_string(offset) + ": end of file");
    buffer = buffer.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return OkStatus();
}

Status WriteAll(int fd, std::span<const char> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(errno, "write " + name);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return OkStatus();
}

Status WriteFileAtomically(const std::string& path, std::span<const char> content, unsigned mode) {
  const std::string temporary = path + ".tmp";
  {
    FF_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(temporary, O_WRONLY | O_CREAT | O_TRUNC, mode));
    FF_RETURN_IF_ERROR(WriteAll(fd.get(), content, temporary));
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0)
    return ErrnoError(errno, "rename to " + path);
  return OkStatus();
}

}  // namespace flamefleet
