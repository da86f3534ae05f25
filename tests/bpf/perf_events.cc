// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/perf_events.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

#include <cstdlib>
#include <filesystem>

namespace flamefleet::testing {

size_t StopPerfEvents() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone) != "anon_inode:[perf_event]") continue;
    const int fd = std::atoi(entry.path().filename().c_str());
    EXPECT_EQ(::ioctl(fd, PERF_EVENT_IOC_DISABLE, 0), 0);
    ++count;
  }
  return count;
}

}  // namespace flamefleet::testing
