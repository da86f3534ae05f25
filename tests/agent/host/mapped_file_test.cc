// SPDX-License-Identifier: Apache-2.0
// A false /proc with one process, whose root holds what a hostile container could put there.
#include "agent/host/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace flamefleet::agent {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() {
    char path[] = "/tmp/ff-mapped-XXXXXX";
    base_ = ::mkdtemp(path);
    fs::create_directories(root() / "lib");
    Write(base_ / "secret", "HOST");
    Write(root() / "lib/good.so", "inside");
  }
  ~MappedFileTest() override { fs::remove_all(base_); }

  fs::path root() const { return base_ / "proc/42/root"; }
  std::string proc() const { return (base_ / "proc").string(); }

  static void Write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  static MapsEntry Entry(const std::string& path) {
    return {.start = 0x1000, .end = 0x2000, .inode = 7, .path = path};
  }

  static std::string Content(const MappedFile& file) {
    return ReadFd(file.fd.get(), 1000, "file").value_or("?");
  }

  fs::path base_;
};

TEST_F(MappedFileTest, OpensAFileInsideTheRoot) {
  const Result<MappedFile> file = OpenMappedFile(proc(), 42, Entry("/lib/good.so"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Content(*file), "inside");
  EXPECT_EQ(file->size, 6u);
}

TEST_F(MappedFileTest, MapFilesComesBeforeThePath) {
  fs::create_directories(base_ / "proc/42/map_files");
  Write(base_ / "mapped", "the mapped inode");
  fs::create_symlink(base_ / "mapped", base_ / "proc/42/map_files/1000-2000");
  const Result<MappedFile> file = OpenMappedFile(proc(), 42, Entry("/lib/good.so"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Content(*file), "the mapped inode");
}

TEST_F(MappedFileTest, LinksDoNotLeadOutOfTheRoot) {
  fs::create_symlink(base_ / "secret", root() / "lib/absolute");
  fs::create_symlink("../../../../../../../.." + (base_ / "secret").string(), root() / "lib/up");
  fs::create_symlink("/proc/self/root" + (base_ / "secret").string(), root() / "lib/magic");
  for (const char* const path : {"/lib/absolute", "/lib/up", "/lib/magic", "/../../../secret"})
    EXPECT_FALSE(OpenMappedFile(proc(), 42, Entry(path)).ok()) << path;
}

TEST_F(MappedFileTest, WhatIsNotARegularFileIsNotOpened) {
  ASSERT_EQ(::mkfifo((root() / "lib/fifo").c_str(), 0644), 0);
  for (const char* const path : {"/lib/fifo", "/lib"}) {
    EXPECT_EQ(OpenMappedFile(proc(), 42, Entry(path)).status().code(),
              StatusCode::kFailedPrecondition)
        << path;
  }
}

TEST_F(MappedFileTest, TooLargeFilesAreNotOpened) {
  Write(root() / "lib/sparse", "");
  fs::resize_file(root() / "lib/sparse", kMaxMappedFileBytes + 1);
  EXPECT_EQ(OpenMappedFile(proc(), 42, Entry("/lib/sparse")).status().code(),
            StatusCode::kResourceExhausted);
}

TEST_F(MappedFileTest, DeletedFileIsNotLookedUpByItsOldPath) {
  MapsEntry entry = Entry("/lib/good.so");
  entry.deleted = true;
  EXPECT_FALSE(OpenMappedFile(proc(), 42, entry).ok());
}

TEST_F(MappedFileTest, WhatIsNoPathIsNoFile) {
  for (const char* const path : {"", "[vdso]", "anon_inode:[perf_event]", "relative"})
    EXPECT_EQ(OpenMappedFile(proc(), 42, Entry(path)).status().code(),
              StatusCode::kFailedPrecondition);
}

TEST_F(MappedFileTest, TableSharesAFileWhileItIsHeld) {
  FileTable table(10);
  const auto first = table.Open(proc(), 42, Entry("/lib/good.so"));
  ASSERT_TRUE(first);
  EXPECT_EQ(table.Open(proc(), 42, Entry("/lib/good.so")), first);
}

TEST_F(MappedFileTest, TableOpensAFileAgainThatWasOverwritten) {
  FileTable table(10);
  const auto first = table.Open(proc(), 42, Entry("/lib/good.so"));
  ASSERT_TRUE(first);
  Write(root() / "lib/good.so", "another program");
  const auto second = table.Open(proc(), 42, Entry("/lib/good.so"));
  ASSERT_TRUE(second);
  EXPECT_NE(second->id(), first->id());
  EXPECT_EQ(table.Open(proc(), 42, Entry("/lib/good.so")), second);
}

// Here the file is where it can be read at once; a server that is away would never answer.
TEST_F(MappedFileTest, TableLeavesFilesAloneThatAreOnAServer) {
  Write(base_ / "proc/42/mountinfo",
        "22 1 0:20 / / rw,relatime shared:1 - overlay overlay rw,lowerdir=/a\n"
        "36 22 0:98 / /lib\\040- rw master:1 shared:2 - nfs4 server:/lib rw,addr=10.0.0.1\n"
        "37 22 0:99 / /mnt rw - fuse.sshfs me@server: rw\n"
        "38 22 0:9 / /tmp rw - tmpfs tmpfs rw,nfs\n");
  const auto opens = [&](uint32_t minor) {
    MapsEntry entry = Entry("/lib/good.so");
    entry.device_minor = minor;
    return FileTable(10).Open(proc(), 42, entry) != nullptr;
  };
  EXPECT_TRUE(opens(20));
  EXPECT_TRUE(opens(9));
  EXPECT_TRUE(opens(8)) << "not mounted there: it is looked at";
  EXPECT_FALSE(opens(98));
  EXPECT_FALSE(opens(99));
}

TEST_F(MappedFileTest, TableOpensNoMoreThanItsBound) {
  Write(root() / "lib/other.so", "other");
  MapsEntry other = Entry("/lib/other.so");
  other.inode = 8;
  FileTable table(1);
  auto first = table.Open(proc(), 42, Entry("/lib/good.so"));
  EXPECT_FALSE(table.Open(proc(), 42, other));
  EXPECT_EQ(table.failures(), 1u);
  first.reset();
  EXPECT_TRUE(table.Open(proc(), 42, other));
}

}  // namespace
}  // namespace flamefleet::agent
