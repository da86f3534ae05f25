// SPDX-License-Identifier: Apache-2.0
// Files that are made to hurt who names their addresses. Whatever they are: no crash of ours, no
// death of the parser that a bound could have prevented, and the next file has its names.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "agent/symbol/symbolizer.h"
#include "tests/support/command.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

class HostileTest : public ::testing::Test {
 protected:
  std::string NameIn(const std::string& path, uint64_t offset) {
    Result<MappedFile> file = root_->OpenFile(path);
    EXPECT_TRUE(file.ok()) << file.status();
    const ImageMapping mapping{.start = 0,
                               .end = UINT64_MAX,
                               .path = path,
                               .file = std::make_shared<const MappedFile>(*std::move(file))};
    return symbolizer_.UserName({.root = root_}, mapping, offset).name;
  }

  // A name that must still be found after each attack.
  void ExpectThatOthersAreNamed() {
    const std::string name = NameIn("/lib/x86_64-linux-gnu/libc.so.6", malloc_offset_);
    EXPECT_TRUE(name == "malloc" || name == "__libc_malloc") << name;
    symbolizer_.EndWindow();
    EXPECT_EQ(parser_->counts().deaths, 0u);
  }

  HostileTest() {
    const std::string line =
        RunCommand({"sh", "-c", "nm -D /lib/x86_64-linux-gnu/libc.so.6 | grep ' malloc@'"}).out;
    malloc_offset_ = std::stoull(line, nullptr, 16);  // libc's code has equal offset and address
  }

  TempDir directory_;
  const std::string bad_ = directory_.path() + "/bad";
  std::shared_ptr<ParserProcess> parser_ = ParserProcess::Installed();
  std::shared_ptr<const RootDirectory> root_ =
      RootDirectory::Open("/proc", static_cast<uint32_t>(::getpid()));
  Symbolizer symbolizer_{"/proc", 8 << 20, parser_};
  uint64_t malloc_offset_ = 0;
};

TEST_F(HostileTest, ASparseFileOfNothing) {
  std::ofstream(bad_) << "\x7f"
                         "ELF";
  std::filesystem::resize_file(bad_, kMaxMappedFileBytes);
  EXPECT_EQ(NameIn(bad_, 0x1000), "bad+0x1000");
  ExpectThatOthersAreNamed();
}

// An address costs its program nothing: a chain of frames through every function does.
TEST_F(HostileTest, MoreNamesThanThereIsMemoryFor) {
  constexpr size_t kFunctions = 2000;
  {
    std::ofstream source(bad_ + ".s");
    source << ".text\n";
    for (size_t i = 0; i < kFunctions; ++i) {
      const std::string name = "f" + std::to_string(i) + "_" + std::string(4000, 'x');
      source << ".globl " << name << "\n.type " << name << ", @function\n"
             << name << ":\n.fill 16, 1, 0x90\n.size " << name << ", 16\n";
    }
  }
  ASSERT_EQ(
      RunCommand({"sh", "-c",
                  "as -o " + bad_ + ".o " + bad_ + ".s && ld -shared -o " + bad_ + " " + bad_ +
                      ".o && cp " + bad_ + " " + bad_ + "2 && cp " + bad_ + " " + bad_ + "3"})
          .exit_code,
      0);
  const std::string text =
      RunCommand({"sh", "-c", "readelf -SW " + bad_ + " | grep ' .text '"}).out;
  std::istringstream fields(text.substr(text.find("PROGBITS") + 8));
  uint64_t address = 0;
  uint64_t begin = 0;
  fields >> std::hex >> address >> begin;
  const auto count_named = [&](const std::string& path) {
    size_t named = 0;
    for (size_t i = 0; i < kFunctions; ++i) {
      if (NameIn(path, begin + 16 * i).starts_with("f" + std::to_string(i) + "_")) ++named;
    }
    return named;
  };
  constexpr size_t kNameBytes = 8000;  // mangled and not
  const size_t in_file = count_named(bad_);
  EXPECT_LE(in_file, kMaxNameBytesOfFile / kNameBytes + 1);
  EXPECT_GT(in_file, kFunctions / 4);
  EXPECT_EQ(symbolizer_.names_refused(), kFunctions - in_file);
  const size_t in_all = in_file + count_named(bad_ + "2") + count_named(bad_ + "3");
  EXPECT_LE(in_all, kMaxNewNameBytes / kNameBytes + 2);
  EXPECT_LE(symbolizer_.Bytes(), kMaxNewNameBytes + (2 << 20));
  symbolizer_.EndWindow();
  EXPECT_EQ(count_named(bad_), in_file);
  ExpectThatOthersAreNamed();
}

TEST_F(HostileTest, AnXzBombForASymbolTable) {
  const std::string make =
      "head -c 200000000 /dev/zero | xz -0 > " + bad_ + ".xz && strip -o " + bad_ +
      " /proc/self/exe && objcopy --add-section=.gnu_debugdata=" + bad_ + ".xz " + bad_;
  ASSERT_EQ(RunCommand({"sh", "-c", make}).exit_code, 0);
  EXPECT_TRUE(NameIn(bad_, 0x2000).starts_with("bad+0x"));
  ExpectThatOthersAreNamed();
}

TEST_F(HostileTest, MutatedAndTruncatedPrograms) {
  const std::string whole = *ReadFile("/proc/self/exe", 64 << 20);
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    std::string bytes = whole.substr(0, round % 4 == 0 ? random() % whole.size() : whole.size());
    for (int i = 0; i < 20 && !bytes.empty(); ++i) {
      // Headers are where one byte changes most: the file's, and the sections' at its end.
      const size_t range = std::min<size_t>(bytes.size(), 4096);
      const size_t at = random() % range;
      bytes[i % 2 == 0 ? at : bytes.size() - 1 - at] = static_cast<char>(random());
    }
    // Another file each time, also for the cache.
    const std::string path = bad_ + std::to_string(round);
    std::ofstream(path, std::ios::binary) << bytes;
    NameIn(path, random() % whole.size());
    std::filesystem::remove(path);
  }
  ExpectThatOthersAreNamed();
}

TEST_F(HostileTest, AFileThatChangesWhileItIsRead) {
  const std::string whole = *ReadFile("/proc/self/exe", 64 << 20);
  std::ofstream(bad_, std::ios::binary) << whole;
  std::jthread changer([this, &whole](const std::stop_token& stop) {
    std::mt19937 random(13);
    const UniqueFd fd(::open(bad_.c_str(), O_WRONLY | O_CLOEXEC));
    while (!stop.stop_requested()) {
      (void)!::ftruncate(fd.get(), static_cast<off_t>(random() % whole.size()));
      (void)!::pwrite(fd.get(), whole.data(), whole.size(), 0);
    }
  });
  for (uint64_t i = 0; i < 50; ++i) {
    NameIn(bad_, 0x1000 * i);
    symbolizer_.EndWindow();
  }
  changer.request_stop();
  changer.join();
  ExpectThatOthersAreNamed();
}

}  // namespace
}  // namespace flamefleet::agent
