// SPDX-License-Identifier: Apache-2.0
#include "agent/pipeline/pipeline_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/memory_limit.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kMaxOpenFiles = 4096;
// Of unwind tables: cc1plus takes 2 MiB, node 1.5, libc 0.1.
constexpr size_t kUnwindTableBytes = 24 << 20;  // without a limit
constexpr size_t kMinUnwindTableBytes = 4 << 20;
constexpr size_t kMaxUnwindTableBytes = 128 << 20;
constexpr uint64_t kUnwindShareOfLimit = 6;  // a sixth: 42 MiB of 256

constexpr size_t kSymbolCacheBytes = 24 << 20;  // libLLVM's table takes 0.3 MB
constexpr uint64_t kSymbolShareOfLimit = 6;

}  // namespace

size_t OpenFileLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMaxOpenFiles / 8;
  return std::min<size_t>(kMaxOpenFiles, limit.rlim_cur / 2);
}

size_t UnwindTableBytes() {
  const std::optional<uint64_t> limit = OwnMemoryLimit();
  if (!limit) return kUnwindTableBytes;
  return std::clamp<size_t>(*limit / kUnwindShareOfLimit, kMinUnwindTableBytes,
                            kMaxUnwindTableBytes);
}

size_t SymbolCacheBytes() {
  const std::optional<uint64_t> limit = OwnMemoryLimit();
  if (!limit) return kSymbolCacheBytes;
  return std::min<size_t>(kSymbolCacheBytes, *limit / kSymbolShareOfLimit);
}

}  // namespace flamefleet::agent
