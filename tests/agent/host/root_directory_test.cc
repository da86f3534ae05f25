// SPDX-License-Identifier: Apache-2.0
// What a container can put where the agent looks for a file.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/host/mapped_file.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

class RootDirectoryTest : public ::testing::Test {
 protected:
  // Relative to the container's root, which has a /tmp and beside which is a secret.
  std::string In(const std::string& name) { return directory_.path() + "/root" + name; }
  RootDirectoryTest() {
    std::filesystem::create_directories(In("/tmp"));
    std::ofstream(directory_.path() + "/secret") << "of the host";
    std::ofstream(In("/tmp/good")) << "of the container";
  }
  Result<MappedFile> Open(const std::string& path) {
    const RootDirectory root(UniqueFd(::open(In("").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
    return root.OpenFile(path);
  }

  TempDir directory_;
};

TEST_F(RootDirectoryTest, OpensAFileOfTheContainer) {
  std::filesystem::create_symlink("/tmp/good", In("/tmp/link"));
  for (const char* const path : {"/tmp/good", "/tmp/link", "/../../tmp/good"}) {
    const Result<MappedFile> file = Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(*ReadFd(file->fd.get(), 100, path), "of the container");
    EXPECT_EQ(file->owner, ::getuid());
  }
}

TEST_F(RootDirectoryTest, NoLinkLeadsOut) {
  std::filesystem::create_symlink(directory_.path() + "/secret", In("/tmp/absolute"));
  std::filesystem::create_symlink("../../secret", In("/tmp/relative"));
  std::filesystem::create_symlink("/proc/self/root/" + directory_.path() + "/secret",
                                  In("/tmp/magic"));
  std::filesystem::create_directory_symlink("../..", In("/tmp/folder"));
  for (const char* const path :
       {"/tmp/absolute", "/tmp/relative", "/tmp/magic", "/tmp/folder/secret", "/../secret"})
    EXPECT_FALSE(Open(path).ok()) << path;
}

TEST_F(RootDirectoryTest, WhatIsNoFileIsNotOpened) {
  ASSERT_EQ(::mkfifo(In("/tmp/fifo").c_str(), 0600), 0);
  for (const char* const path : {"/tmp/fifo", "/tmp"})  // without waiting for a writer
    EXPECT_EQ(Open(path).status().code(), StatusCode::kFailedPrecondition) << path;
  if (::mknod(In("/tmp/device").c_str(), S_IFCHR | 0600, 0x103) == 0) {  // root only: /dev/null
    EXPECT_EQ(Open("/tmp/device").status().code(), StatusCode::kFailedPrecondition);
  }
}

TEST_F(RootDirectoryTest, AHugeFileIsRefused) {
  std::filesystem::resize_file(In("/tmp/good"), uint64_t{1} << 40);
  EXPECT_EQ(Open("/tmp/good").status().code(), StatusCode::kResourceExhausted);
}

TEST(RootTable, ProcessesOfOneContainerShareARoot) {
  RootTable roots;
  const auto self = static_cast<uint32_t>(::getpid());
  const auto first = roots.Open("/proc", self);
  ASSERT_TRUE(first);
  EXPECT_EQ(roots.Open("/proc", self), first);
  EXPECT_FALSE(roots.Open("/nonexistent", self));
}

}  // namespace
}  // namespace flamefleet::agent
