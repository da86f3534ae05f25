// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace flamefleet {
namespace {

class MemoryLimit : public ::testing::Test {
 protected:
  ~MemoryLimit() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

  const std::string root_ = ::testing::TempDir() + "ff-limit-" + std::to_string(::getpid());
};

TEST_F(MemoryLimit, IsThatOfTheV2Cgroup) {
  Write("/proc/self/cgroup", "0::/kubepods/pod1/c\n");
  Write("/sys/fs/cgroup/kubepods/pod1/c/memory.max", "268435456\n");
  EXPECT_EQ(OwnMemoryLimit(root_), 268435456u);
}

TEST_F(MemoryLimit, IsThatOfTheV1Cgroup) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000000\n");
  EXPECT_EQ(OwnMemoryLimit(root_), 1000000u);
}

TEST_F(MemoryLimit, IsFoundWhereTheContainerIsTheRootOfItsMount) {
  Write("/proc/self/cgroup", "0::/../other\n");
  Write("/sys/fs/cgroup/memory.max", "5000000\n");
  EXPECT_EQ(OwnMemoryLimit(root_), 5000000u);
}

TEST_F(MemoryLimit, UseOfTheV2CgroupLeavesOutIdleFilePages) {
  Write("/proc/self/cgroup", "0::/c\n");
  Write("/sys/fs/cgroup/c/memory.max", "1000\n");
  Write("/sys/fs/cgroup/c/memory.current", "900\n");
  Write("/sys/fs/cgroup/c/memory.stat", "anon 5\nfile 500\ninactive_file 300\nactive_file 200\n");
  EXPECT_EQ(OwnMemoryUse(root_)->used, 600u);
  EXPECT_EQ(OwnMemoryUse(root_)->limit, 1000u);
}

TEST_F(MemoryLimit, UseOfAHybridHostIsThatOfTheV1Cgroup) {
  Write("/proc/self/cgroup", "4:memory:/a\n0::/a\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n");
  Write("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "900\n");
  Write("/sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n");
  Write("/sys/fs/cgroup/a/memory.current", "5\n");
  EXPECT_EQ(OwnMemoryUse(root_)->used, 800u);
}

TEST_F(MemoryLimit, UseIsNotKnownWithoutALimit) {
  Write("/proc/self/cgroup", "0::/c\n");
  Write("/sys/fs/cgroup/c/memory.max", "max\n");
  Write("/sys/fs/cgroup/c/memory.current", "900\n");
  EXPECT_FALSE(OwnMemoryUse(root_));
}

TEST_F(MemoryLimit, IsNoneWithoutOne) {
  EXPECT_EQ(OwnMemoryLimit(root_), std::nullopt);
  Write("/proc/self/cgroup", "4:memory:/a\n0::/a\nrubbish\n");
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/a/memory.max", "max\n");
  EXPECT_EQ(OwnMemoryLimit(root_), std::nullopt);
}

}  // namespace
}  // namespace flamefleet
