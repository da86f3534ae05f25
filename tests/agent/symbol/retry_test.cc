// SPDX-License-Identifier: Apache-2.0
// Files that kill their parser, and files that nobody asks for any more.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "agent/symbol/symbolizer.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

class RetryTest : public ::testing::Test {
 protected:
  RetryTest() {
    std::ofstream(path_) << "c";  // crash
    auto file = std::make_shared<MappedFile>();
    file->fd.reset(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    file->size = 1;
    mapping_ = {.start = 0, .end = 0x1000, .path = path_, .file = file};
  }

  TempDir directory_;
  const std::string path_ = directory_.path() + "/file";
  const std::shared_ptr<ParserProcess> parser_ = std::make_shared<ParserProcess>(FF_FAULTY_PARSER);
  Symbolizer symbolizer_{"/proc", 1 << 20, parser_};
  ImageMapping mapping_;
};

TEST_F(RetryTest, AFileThatKillsItsParserIsTriedThreeTimes) {
  std::vector<int> tries;
  for (int window = 0; window < 100; ++window) {
    const uint64_t before = parser_->counts().requests;
    EXPECT_EQ(symbolizer_.UserName({}, mapping_, 0x10).name, "file+0x10");
    symbolizer_.UserName({}, mapping_, 0x20);
    if (parser_->counts().requests > before) tries.push_back(window);
    symbolizer_.EndWindow();
  }
  EXPECT_EQ(tries, (std::vector<int>{0, 6, 30}));
  EXPECT_EQ(parser_->counts().deaths, 3u);
}

TEST_F(RetryTest, LinesOfAFileThatKillsItsParserAreAskedForThreeTimes) {
  FileLines lines;
  LineCounts counts{};
  NameBudget names(1 << 20);
  const std::array files = {mapping_.file->fd.get()};
  for (int window = 0; window < 10; ++window) {
    lines.Want(0x10);
    lines.Resolve(parser_.get(), files, std::chrono::hours(1), &names, &counts);
  }
  EXPECT_EQ(parser_->counts().deaths, 3u);
  EXPECT_EQ(counts[static_cast<size_t>(LineOutcome::kDied)], 10u);
}

TEST(IdleFile, IsClosed) {
  Symbolizer symbolizer("/proc", 64 << 20);
  auto file = std::make_shared<MappedFile>();
  file->fd.reset(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const std::weak_ptr<const MappedFile> seen = file;
  ImageMapping mapping{.start = 0, .end = UINT64_MAX, .path = "/x", .file = std::move(file)};
  symbolizer.UserName({}, mapping, 0x1000);
  mapping.file.reset();
  for (uint64_t window = 0; window < kIdleFileWindows; ++window)
    symbolizer.EndWindow();
  EXPECT_FALSE(seen.expired());
  symbolizer.EndWindow();
  EXPECT_TRUE(seen.expired());
}

TEST(Symbolizer, KeepsNoListOfLinesThatNobodyAsksFor) {
  Symbolizer symbolizer("/proc", 64 << 20);
  auto file = std::make_shared<MappedFile>();
  file->fd.reset(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const UniqueFd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const ElfFile elf = *ReadElfFile(fd.get());
  const ImageMapping mapping{.start = 0, .end = UINT64_MAX, .path = "/x", .file = file};
  symbolizer.UserName({}, mapping, 0x1000);
  symbolizer.SetReadsNewFiles(false);
  for (int window = 0; window < 10; ++window) {
    for (uint64_t i = 0; i < 1000; ++i)
      symbolizer.WantLines({}, mapping, elf.text->offset + i);
    symbolizer.ResolveLines();
  }
  symbolizer.SetReadsNewFiles(true);
  symbolizer.ResolveLines();
  uint64_t asked = 0;
  for (const uint64_t count : symbolizer.line_counts())
    asked += count;
  EXPECT_EQ(asked, 0u);
}

TEST(FileLines, LinesBeyondTheBudgetAreCountedAndAskedForAgain) {
  FileLines lines;
  LineCounts counts{};
  NameBudget none(0);
  const UniqueFd fd(::open(FF_LINES_PROGRAM "5", O_RDONLY | O_CLOEXEC));
  const ElfFile elf = *ReadElfFile(fd.get());
  const std::array files = {fd.get()};
  const std::shared_ptr<ParserProcess> parser = ParserProcess::Installed();
  const uint64_t address = elf.text->address + elf.text->size / 2;
  lines.Want(address);
  lines.Resolve(parser.get(), files, std::chrono::hours(1), &none, &counts);
  EXPECT_EQ(counts[static_cast<size_t>(LineOutcome::kTooLarge)], 1u);
  EXPECT_TRUE(lines.Find(address).empty());
  NameBudget some(1 << 20);
  lines.Want(address);
  lines.Resolve(parser.get(), files, std::chrono::hours(1), &some, &counts);
  EXPECT_EQ(parser->counts().requests, 2u);
  EXPECT_FALSE(lines.Find(address).empty());
}

}  // namespace
}  // namespace flamefleet::agent
