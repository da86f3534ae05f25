// SPDX-License-Identifier: Apache-2.0
// What the cache knows of files that give no table; those that do: tests/bpf/unwind_test.cc.
#include "agent/stack/unwind_table_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace flamefleet::agent {
namespace {

constexpr int64_t kMinute = kIdleTableNanos;

ImageMapping MappingOf(const std::string& path, uint64_t inode) {
  auto file = std::make_shared<MappedFile>();
  file->fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  file->inode = inode;
  return {.start = 0x1000, .end = 0x2000, .path = path, .file = file};
}

class UnwindTableCacheTest : public ::testing::Test {
 protected:
  UnwindTableCacheTest() { std::ofstream(path_) << "no program"; }
  // How often the parser is asked.
  uint64_t Asked(const ImageMapping& mapping, int64_t now_ns) {
    const uint64_t before = parser_->counts().requests;
    cache_.Resolve(mapping, now_ns);
    return parser_->counts().requests - before;
  }

  const std::string path_ = ::testing::TempDir() + "ff-unwind-cache-" + std::to_string(::getpid());
  // No table is ever added.
  const std::shared_ptr<ParserProcess> parser_ = std::make_shared<ParserProcess>(FF_FAULTY_PARSER);
  UnwindTableCache cache_{UnwindMaps(-1, -1), 1 << 20, parser_};
};

TEST(UnwindTableCache, TheFileUntouchedForLongestGoesOverTheBound) {
  UnwindTableCache cache(UnwindMaps(-1, -1), 1 << 20, std::make_shared<ParserProcess>("/none"));
  // A file that is known keeps the time at which it is tried again.
  const auto first_seen_ns = [&cache](uint64_t inode, int64_t now_ns) {
    int64_t retry_ns = 0;
    cache.Resolve(MappingOf("/dev/null", inode), now_ns, &retry_ns);
    return retry_ns - kMinute;
  };
  EXPECT_EQ(first_seen_ns(1, 1), 1);
  for (uint64_t inode = 2; inode <= kMaxUnwindFiles; ++inode)
    ASSERT_EQ(first_seen_ns(inode, 2), 2);
  EXPECT_EQ(first_seen_ns(1, 3), 1);
  EXPECT_EQ(first_seen_ns(kMaxUnwindFiles + 1, 4), 4);
  EXPECT_EQ(cache.file_count(), kMaxUnwindFiles);
  EXPECT_EQ(first_seen_ns(1, 5), 1);
  EXPECT_EQ(first_seen_ns(2, 5), 5);
}

TEST_F(UnwindTableCacheTest, AFileThatNobodyUsesIsForgotten) {
  cache_.Resolve(MappingOf(path_, 1), 0);
  cache_.Sweep({}, kMinute);
  EXPECT_EQ(cache_.file_count(), 1u);
  cache_.Sweep({}, kMinute + 1);
  EXPECT_EQ(cache_.file_count(), 0u);
}

TEST_F(UnwindTableCacheTest, AFileThatKillsItsParserIsTriedThreeTimes) {
  std::ofstream(path_) << "c";  // crash
  const ImageMapping mapping = MappingOf(path_, 1);
  EXPECT_EQ(Asked(mapping, 0), 1u);
  EXPECT_EQ(Asked(mapping, 4 * kMinute - 1), 0u);
  EXPECT_EQ(Asked(mapping, 4 * kMinute), 1u);
  EXPECT_EQ(Asked(mapping, 20 * kMinute - 1), 0u);
  EXPECT_EQ(Asked(mapping, 20 * kMinute), 1u);
  EXPECT_EQ(Asked(mapping, 1000 * kMinute), 0u);
  EXPECT_EQ(parser_->counts().deaths, 3u);
}

TEST_F(UnwindTableCacheTest, WhenAFileIsTriedAgainIsSaid) {
  std::ofstream(path_) << "c";
  int64_t retry_ns = 0;
  cache_.Resolve(MappingOf(path_, 1), 0, &retry_ns);
  EXPECT_EQ(retry_ns, 4 * kMinute);
}

}  // namespace
}  // namespace flamefleet::agent
