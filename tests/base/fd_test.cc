// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace flamefleet {
namespace {

TEST(Fd, AFileOverTheBoundIsRefusedNotCut) {
  const std::string path = testing::TempDir() + "/fd_test_bound";
  ASSERT_TRUE(WriteFileAtomically(path, std::string(100, 'x'), 0600).ok());
  EXPECT_EQ(ReadFile(path, 100)->size(), 100U);
  EXPECT_EQ(ReadFile(path, 99).status().code(), StatusCode::kResourceExhausted);
  ::unlink(path.c_str());
}

TEST(Fd, ProcFilesOfSizeZeroAreReadWhole) {
  EXPECT_NE(ReadFile("/proc/self/status", 1 << 16)->find("Name:"), std::string::npos);
}

TEST(Fd, ReadingPastTheEndIsDataLoss) {
  const std::string path = testing::TempDir() + "/fd_test_end";
  ASSERT_TRUE(WriteFileAtomically(path, std::string("abc"), 0600).ok());
  const auto fd = OpenFile(path, O_RDONLY);
  ASSERT_TRUE(fd.ok());
  std::byte buffer[4];
  EXPECT_EQ(PreadExact(fd->get(), buffer, 0).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(PreadExact(fd->get(), std::span(buffer).first(2), 1).ok());
  EXPECT_EQ(buffer[0], std::byte{'b'});
  ::unlink(path.c_str());
}

TEST(Fd, MovingLeavesNothingBehind) {
  UniqueFd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = first.get();
  const UniqueFd second(std::move(first));
  EXPECT_FALSE(first.ok());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(second.get(), number);
}

}  // namespace
}  // namespace flamefleet
