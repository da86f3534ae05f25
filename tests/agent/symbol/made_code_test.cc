// SPDX-License-Identifier: Apache-2.0
// Names of code that processes make at run time, as the symbolizer looks for them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/symbol/symbolizer.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

class MadeCodeTest : public ::testing::Test {
 protected:
  MadeCodeTest() { std::filesystem::create_directory(directory_.path() + "/tmp"); }

  // A process that has made code, with this folder as its root.
  ProcessImage Image(uint32_t pid) {
    ProcessImage image;
    image.id.pid = pid;
    image.root = std::make_shared<const RootDirectory>(
        UniqueFd(::open(directory_.path().c_str(), O_PATH | O_CLOEXEC)));
    image.namespace_pid = pid;
    image.user = ::getuid();
    return image;
  }
  void Write(uint32_t pid, const std::string& text) {
    std::ofstream(directory_.path() + "/tmp/perf-" + std::to_string(pid) + ".map") << text;
  }
  std::string NameAt(const ProcessImage& image, uint64_t address) {
    return symbolizer_.UserName(image, {.start = 0, .end = UINT64_MAX}, address).name;
  }

  TempDir directory_;
  Symbolizer symbolizer_{"/proc", 64 << 20};
};

TEST_F(MadeCodeTest, IsLookedForOnceInAWindow) {
  const ProcessImage image = Image(1);
  EXPECT_EQ(NameAt(image, 0x1000), "[anonymous]");
  Write(1, "1000 10 made\n");
  EXPECT_EQ(NameAt(image, 0x1000), "[anonymous]");
  symbolizer_.EndWindow();
  EXPECT_EQ(NameAt(image, 0x1000), "made");
  EXPECT_EQ(NameAt(Image(2), 0x1000), "[anonymous]");
}

TEST_F(MadeCodeTest, NamesOfManyProcessesStayInTheBoundAndWhatIsLeftOutIsCounted) {
  // As much as one process may have, of which the bound has room for a few.
  std::string text;
  for (size_t i = 0; i < 30'000; ++i)
    text += std::to_string(100'000 + i) + " 1 " + std::string(90, 'n') + "\n";
  constexpr uint32_t kProcesses = 6;
  for (uint32_t pid = 1; pid <= kProcesses; ++pid) {
    Write(pid, "100000 1 first\n");
    EXPECT_EQ(NameAt(Image(pid), 0x100000), "first");
  }
  symbolizer_.EndWindow();
  const uint64_t refused = symbolizer_.names_refused();
  uint32_t named = 0;
  for (uint32_t pid = 1; pid <= kProcesses; ++pid) {
    Write(pid, "100000 1 first\n" + text);
    named += NameAt(Image(pid), 0x100001) == "[anonymous]" ? 0 : 1;
    EXPECT_LE(symbolizer_.Bytes(), kMaxMadeCodeBytes);
  }
  EXPECT_GE(named, 1u);
  EXPECT_EQ(symbolizer_.names_refused() - refused, kProcesses - named);
  // Those that are asked for no longer make room.
  for (uint64_t window = 0; window <= kRefusedMadeCodeWindows; ++window)
    symbolizer_.EndWindow();
  EXPECT_NE(NameAt(Image(kProcesses), 0x100001), "[anonymous]");
}

}  // namespace
}  // namespace flamefleet::agent
