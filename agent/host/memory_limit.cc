// SPDX-License-Identifier: Apache-2.0
#include "agent/host/memory_limit.h"

#include <charconv>
#include <sstream>

#include "base/fd.h"

namespace flamefleet::agent {
namespace {

// v1 says "no limit" by a number near 2^63.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;
constexpr size_t kMaxFileBytes = 64 << 10;

std::optional<uint64_t> ReadLimit(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return std::nullopt;
  uint64_t limit = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (error != std::errc() || limit >= kNoLimit) return std::nullopt;  // "max" as well
  return limit;
}

}  // namespace

std::optional<uint64_t> OwnMemoryLimit(const std::string& root) {
  const Result<std::string> text = ReadFile(root + "/proc/self/cgroup", kMaxFileBytes);
  if (!text.ok()) return std::nullopt;
  std::optional<uint64_t> smallest;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {  // "4:memory:/a/b", "0::/a/b"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_v2 = controllers.empty();
    if (!is_v2 && controllers != "memory") continue;
    const std::string mount = root + "/sys/fs/cgroup" + (is_v2 ? "" : "/memory");
    const std::string file = is_v2 ? "/memory.max" : "/memory.limit_in_bytes";
    // A container may see its own cgroup as the root of what is mounted.
    for (const std::string& path : {mount + line.substr(second + 1) + file, mount + file}) {
      const std::optional<uint64_t> limit = ReadLimit(path);
      if (limit && (!smallest || *limit < *smallest)) smallest = limit;
    }
  }
  return smallest;
}

}  // namespace flamefleet::agent
