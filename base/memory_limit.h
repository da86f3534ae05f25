// SPDX-License-Identifier: Apache-2.0
// How much memory this process may use, and uses: the limit of its cgroup, v1 or v2.
//
// Thread: any. Units: bytes. Errors: none; what cannot be read is no limit.
// Source: cgroups(7), proc_pid_cgroup(5)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace flamefleet {

// Nothing when there is no limit. `root` is "" but in tests.
std::optional<uint64_t> OwnMemoryLimit(const std::string& root = "");

struct MemoryUse {
  uint64_t used = 0;  // of all processes of the cgroup and of the kernel for them, but for file
                      // pages that it would give back at once
  uint64_t limit = 0;
};
// Nothing when there is no limit.
std::optional<MemoryUse> OwnMemoryUse(const std::string& root = "");

}  // namespace flamefleet
