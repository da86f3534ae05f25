// SPDX-License-Identifier: Apache-2.0
#include "base/write_all.h"

#include <unistd.h>

#include <cerrno>

namespace flamefleet {

Status WriteAll(int fd, std::span<const char> bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(errno, "write " + name);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return OkStatus();
}

}  // namespace flamefleet
