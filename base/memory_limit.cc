// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

#include "base/fd.h"

namespace flamefleet {
namespace {

// v1 says "no limit" by a number near 2^63.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;
constexpr size_t kMaxFileBytes = 64 << 10;

std::optional<uint64_t> ReadNumber(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMaxFileBytes);
  if (!text.ok()) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc()) return std::nullopt;  // "max"
  return number;
}

// The number behind `key` and a space; 0 when it is not there.
uint64_t ReadStat(const std::string& path, std::string_view key) {
  std::istringstream lines(ReadFile(path, kMaxFileBytes).value_or(std::string()));
  uint64_t number = 0;
  for (std::string name; lines >> name >> number;) {
    if (name == key) return number;
  }
  return 0;
}

struct Limited {
  std::string directory;
  bool is_v2 = false;
  uint64_t limit = 0;
};

// The directory of this process's cgroup that has the smallest limit.
std::optional<Limited> FindLimit(const std::string& root) {
  const Result<std::string> text = ReadFile(root + "/proc/self/cgroup", kMaxFileBytes);
  if (!text.ok()) return std::nullopt;
  std::optional<Limited> smallest;
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
    for (const std::string& directory : {mount + line.substr(second + 1), mount}) {
      const std::optional<uint64_t> limit = ReadNumber(directory + file);
      if (limit && *limit < kNoLimit && (!smallest || *limit < smallest->limit))
        smallest = {.directory = directory, .is_v2 = is_v2, .limit = *limit};
    }
  }
  return smallest;
}

}  // namespace

std::optional<uint64_t> OwnMemoryLimit(const std::string& root) {
  const std::optional<Limited> found = FindLimit(root);
  if (!found) return std::nullopt;
  return found->limit;
}

std::optional<MemoryUse> OwnMemoryUse(const std::string& root) {
  const std::optional<Limited> found = FindLimit(root);
  if (!found) return std::nullopt;
  const std::optional<uint64_t> all =
      ReadNumber(found->directory + (found->is_v2 ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!all) return std::nullopt;
  const uint64_t idle_files = ReadStat(found->directory + "/memory.stat",
                                       found->is_v2 ? "inactive_file" : "total_inactive_file");
  return MemoryUse{.used = *all - std::min(*all, idle_files), .limit = found->limit};
}

}  // namespace flamefleet
