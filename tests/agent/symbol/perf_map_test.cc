// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/perf_map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <string>

#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

class PerfMapTest : public ::testing::Test {
 protected:
  void Write(const std::string& text, int flags = O_APPEND) {
    const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | flags, 0600));
    ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  // As the agent opens it.
  Status Update() {
    MappedFile file;
    file.fd.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    EXPECT_EQ(::fstat(file.fd.get(), &info), 0);
    file.device = info.st_dev;
    file.inode = info.st_ino;
    file.size = static_cast<uint64_t>(info.st_size);
    return map_.Update(file, parser_.get());
  }

  std::string NameAt(uint64_t address) { return std::string(map_.Find(address)); }

  TempDir directory_;
  std::string path_ = directory_.path() + "/perf-1.map";
  std::shared_ptr<ParserProcess> parser_ = ParserProcess::Installed();
  PerfMap map_;
};

TEST_F(PerfMapTest, NamesWhatItHoldsAndNothingElse) {
  Write("7f0010 20 first\n0x7f0040 0x10 py::f:/app/x.py\n7F0050 8 LazyCompile:~b /a.js:1\n");
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x7f000f), "");
  EXPECT_EQ(NameAt(0x7f0010), "first");
  EXPECT_EQ(NameAt(0x7f002f), "first");
  EXPECT_EQ(NameAt(0x7f0030), "");
  EXPECT_EQ(NameAt(0x7f004f), "py::f:/app/x.py");
  EXPECT_EQ(NameAt(0x7f0050), "LazyCompile:~b /a.js:1");
  EXPECT_EQ(NameAt(0x7f0058), "");
}

TEST_F(PerfMapTest, ALaterLineWinsOverAllThatItOverlaps) {
  Write("1000 100 a\n1100 100 b\n1200 100 c\n1080 200 moved\n");
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x107f), "a");
  EXPECT_EQ(NameAt(0x1080), "moved");
  EXPECT_EQ(NameAt(0x127f), "moved");
  EXPECT_EQ(NameAt(0x1280), "") << "what began under it is gone";
}

TEST_F(PerfMapTest, ReadsOnlyWhatWasAppendedAndWaitsForTheEndOfALine) {
  Write("1000 10 first\n2000 10 sec");
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x1000), "first");
  EXPECT_EQ(NameAt(0x2000), "");
  Write("ond\n");
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x2000), "second");
  EXPECT_EQ(map_.size(), 2u);
}

TEST_F(PerfMapTest, AFileThatBeganAnewIsReadAnew) {
  Write("1000 10 old\n2000 10 gone\n");
  ASSERT_TRUE(Update().ok());
  Write("1000 10 new\n", O_TRUNC);
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x1000), "new");
  EXPECT_EQ(NameAt(0x2000), "");
}

// As a JVM writes it, again and again, into the same file.
TEST_F(PerfMapTest, AFileThatWasWrittenAnewAndIsNotShorterIsReadAnew) {
  Write("1000 10 old\n2000 10 gone\n");
  ASSERT_TRUE(Update().ok());
  Write("1000 10 new\n3000 10 come\n", O_TRUNC);
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x1000), "new");
  EXPECT_EQ(NameAt(0x2000), "");
  EXPECT_EQ(NameAt(0x3000), "come");
  Write("1000 10 newer\n2000 10 here\n4000 10 as well\n", O_TRUNC);
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x1000), "newer");
  EXPECT_EQ(NameAt(0x2000), "here");
  EXPECT_EQ(NameAt(0x3000), "");
  EXPECT_EQ(NameAt(0x4000), "as well");
}

TEST_F(PerfMapTest, LinesOfAnotherFormAreLeftOut) {
  Write(
      "\n \nx 10 a\n1000\n1000 \n1000 10\n1000 10 \n1000 0 empty\nffffffffffffffff 2 over\n"
      "1000 zz b\n3000 10 good\r\n");
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(map_.size(), 1u);
  EXPECT_EQ(NameAt(0x3000), "good");
}

TEST_F(PerfMapTest, OfALargeFileTheEndIsReadInBoundedMemory) {
  const UniqueFd fd(::open(path_.c_str(), O_WRONLY | O_CREAT, 0600));
  ASSERT_EQ(::ftruncate(fd.get(), off_t{1} << 30), 0);  // 1 GB without a line
  Write("\n1000 10 last\n");
  ASSERT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x1000), "last");
  std::string many;
  for (int i = 0; i < 200'000; ++i)
    many += std::to_string(100000 + i) + "0 10 " + std::string(30, 'n') + "\n";
  Write(many);
  ASSERT_TRUE(Update().ok());
  EXPECT_LE(map_.Bytes(), 8u << 20);
  EXPECT_NE(NameAt(0x2999990), "");
}

TEST_F(PerfMapTest, RubbishIsHarmless) {
  std::mt19937 random(7);
  std::string rubbish(1 << 20, '\0');
  for (char& c : rubbish)
    c = static_cast<char>(random());
  Write(rubbish + "\n1000 10 good\n");
  EXPECT_TRUE(Update().ok());
  EXPECT_EQ(NameAt(0x1000), "good");
  EXPECT_EQ(parser_->counts().deaths, 0u);
}

TEST(MadeFunctions, WhatIsCompiledAgainAndAgainCostsOthersNothing) {
  MadeFunctions functions;
  functions.Insert(0x1000, 0x2000, "compiled once");
  const std::string again(kMaxMadeNameBytes, 'a');
  for (size_t bytes = 0; bytes < 3 * kMaxMadeNamesBytes; bytes += again.size())
    functions.Insert(0x3000, 0x4000, again);
  EXPECT_EQ(functions.Find(0x1fff), "compiled once");
  EXPECT_EQ(functions.Find(0x3fff), again);
  EXPECT_EQ(functions.size(), 2u);
}

TEST(MadeFunctions, OfTooManyTheNewestKeepTheirNames) {
  MadeFunctions functions;
  const auto name = [](size_t i) { return std::to_string(i) + std::string(i % 100, 'n'); };
  size_t count = 3 * kMaxMadeFunctions;
  for (size_t i = 0; i < count; ++i)
    functions.Insert(i * 16, i * 16 + 16, name(i));
  EXPECT_LE(functions.size(), kMaxMadeFunctions);
  EXPECT_LE(functions.Bytes(), 8u << 20);
  EXPECT_EQ(functions.Find(0), "");
  for (size_t i = count - kMaxMadeFunctions / 3; i < count; ++i)
    ASSERT_EQ(functions.Find(i * 16 + 8), name(i));
}

}  // namespace
}  // namespace flamefleet::agent
