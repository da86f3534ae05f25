// SPDX-License-Identifier: Apache-2.0
#include "agent/host/maps.h"

#include <gtest/gtest.h>

#include "base/fd.h"

namespace flamefleet::agent {
namespace {

TEST(Maps, KeepsExecutableMappingsWithAllTheirFields) {
  const Result<std::vector<MapsEntry>> maps = ParseMaps(
      "55d0c0a00000-55d0c0a02000 r--p 00000000 fe:01 1234 /usr/bin/a b\n"
      "55d0c0a02000-55d0c0a05000 r-xp 00002000 fe:01 1234                       /usr/bin/a b\n"
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
      "7ffd1e9f0000-7ffd1e9f2000 r-xp 00000000 00:00 0                          [vdso]\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_TRUE(maps.ok()) << maps.status();
  ASSERT_EQ(maps->size(), 4u);
  const MapsEntry& file = maps->at(0);
  EXPECT_EQ(file.start, 0x55d0c0a02000u);
  EXPECT_EQ(file.end, 0x55d0c0a05000u);
  EXPECT_EQ(file.offset, 0x2000u);
  EXPECT_EQ(file.device_major, 0xfeu);
  EXPECT_EQ(file.device_minor, 1u);
  EXPECT_EQ(file.inode, 1234u);
  EXPECT_EQ(file.path, "/usr/bin/a b");
  EXPECT_FALSE(file.deleted);
  EXPECT_EQ(maps->at(1).path, "");
  EXPECT_EQ(maps->at(2).path, "[vdso]");
  EXPECT_EQ(maps->at(3).end, 0xffffffffff601000u);
}

TEST(Maps, TellsDeletedFiles) {
  const Result<std::vector<MapsEntry>> maps =
      ParseMaps("1000-2000 r-xp 00000000 00:1f 7 /tmp/x (deleted)\n");
  ASSERT_TRUE(maps.ok());
  EXPECT_TRUE(maps->at(0).deleted);
  EXPECT_EQ(maps->at(0).path, "/tmp/x");
}

TEST(Maps, RefusesWhatIsNotOne) {
  for (const char* const text :
       {"x", "1000-2000", "1000-2000 r-xp", "2000-1000 r-xp 0 0:0 0 /a", "1000-2000 r-xp z 0:0 0",
        "1000-2000 r-x", "10000000000000000-20000000000000000 r-xp 0 0:0 0 /a", "\n",
        "1000-2000 r-xp 0 0:0 99999999999999999999999 /a"}) {
    EXPECT_EQ(ParseMaps(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

// That many mappings, of the file or of none.
std::string MappingsOf(const std::string& inode_and_path, size_t first, size_t count) {
  std::string text;
  for (size_t i = first; i < first + count; ++i) {
    char line[128];
    std::snprintf(line, sizeof(line), "%zx000-%zx000 r-xp 00000000 00:00 %s\n", i, i + 1,
                  inode_and_path.c_str());
    text += line;
  }
  return text;
}

TEST(Maps, StopsAtItsBound) {
  const auto maps = ParseMaps(MappingsOf("7 /lib/a.so", 1, kMaxMappings + 10));
  ASSERT_TRUE(maps.ok());
  EXPECT_EQ(maps->size(), kMaxMappings);
}

TEST(Maps, CodeThatIsMadeLeavesRoomForFilesAboveIt) {
  for (const char* const made : {"0", "9 /memfd:doublemapper (deleted)"}) {
    const auto maps =
        ParseMaps(MappingsOf(made, 1, kMaxMappings) + MappingsOf("7 /lib/a.so", 1 << 16, 3));
    ASSERT_TRUE(maps.ok());
    ASSERT_EQ(maps->size(), kMaxMappings - kMappingsForFiles + 3) << made;
    EXPECT_EQ(maps->back().path, "/lib/a.so");
  }
}

TEST(Maps, OfThisProcessAreInOrderAndHoldThisCode) {
  const Result<std::string> text = ReadFile("/proc/self/maps", kMaxMapsBytes);
  ASSERT_TRUE(text.ok());
  const Result<std::vector<MapsEntry>> maps = ParseMaps(*text);
  ASSERT_TRUE(maps.ok()) << maps.status();
  const auto here = reinterpret_cast<uint64_t>(&ParseMaps);
  bool found = false;
  uint64_t last_end = 0;
  for (const MapsEntry& entry : *maps) {
    EXPECT_GE(entry.start, last_end);
    last_end = entry.end;
    found = found || (here >= entry.start && here < entry.end);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace flamefleet::agent
