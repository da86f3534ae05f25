// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bpf/bpf.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

namespace flamefleet::testing {

// A descriptor of this process's BPF map that `is_it` knows; -1: there is none.
inline int FindBpfMap(const std::function<bool(const bpf_map_info&)>& is_it) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != "anon_inode:bpf-map") continue;
    const int fd = std::atoi(entry.path().filename().c_str());
    bpf_map_info info{};
    uint32_t size = sizeof(info);
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && is_it(info)) return fd;
  }
  return -1;
}

}  // namespace flamefleet::testing
