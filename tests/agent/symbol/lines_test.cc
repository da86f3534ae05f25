// SPDX-License-Identifier: Apache-2.0
// Inlined functions, files and lines against elfutils' eu-addr2line and LLVM's llvm-symbolizer, for
// 5,000 addresses each. Where compilers gave two inlined functions the same instruction the two
// differ, and eu-addr2line may even contradict itself (its first line from another branch than the
// rest): we must say what one of them says.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "agent/symbol/dwarf_unit.h"
#include "agent/symbol/line_request.h"
#include "agent/symbol/symbolizer.h"
#include "base/fd.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kAddresses = 5000;
// Time is no subject here: the machine may be busy.
constexpr std::chrono::seconds kLongTime{20};

void MustRun(const std::vector<std::string>& argv) {
  const CommandResult result = RunCommand(argv);
  ASSERT_EQ(result.exit_code, 0) << argv[0] << ": " << result.err;
}

struct Frame {
  std::string function;
  std::string file;
  uint64_t line = 0;
  friend bool operator==(const Frame&, const Frame&) = default;
};
using Stack = std::vector<Frame>;

std::string ToText(const Stack& stack) {
  std::ostringstream text;
  for (const Frame& frame : stack)
    text << "\n    " << frame.function << " " << frame.file << ":" << frame.line;
  return text.str();
}

class LinesTest : public ::testing::Test {
 protected:
  static std::vector<uint64_t> CodeOf(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const ElfFile elf = *ReadElfFile(fd.get());
    std::mt19937_64 random(5);
    std::vector<uint64_t> addresses;
    // The section of the program itself; those beside it were made by the linker.
    while (addresses.size() < kAddresses)
      addresses.push_back(elf.text->address + random() % elf.text->size);
    std::ranges::sort(addresses);
    addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
    return addresses;
  }

  static std::vector<Stack> AskOracle(const std::string& path,
                                      const std::vector<uint64_t>& addresses) {
    std::ostringstream input;
    for (const uint64_t address : addresses)
      input << "0x" << std::hex << address << "\n";
    const CommandResult result =
        RunCommand({"eu-addr2line", "-a", "-f", "-i", "-e", path}, input.str());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<Stack> stacks;
    std::istringstream lines(result.out);
    std::string function;
    while (std::getline(lines, function)) {
      if (function.starts_with("0x")) {
        stacks.emplace_back();
        continue;
      }
      std::string place;
      std::getline(lines, place);
      stacks.back().push_back(ReadFrame(function, place));
    }
    return stacks;
  }

  static std::vector<Stack> AskLlvm(const std::string& path,
                                    const std::vector<uint64_t>& addresses) {
    std::ostringstream input;
    for (const uint64_t address : addresses)
      input << "0x" << std::hex << address << "\n";
    const CommandResult result = RunCommand(
        {"llvm-symbolizer", "-e", path, "--no-demangle", "--functions=linkage", "--inlines"},
        input.str());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<Stack> stacks(addresses.size());
    std::istringstream lines(result.out);
    std::string function;
    for (size_t i = 0; i < stacks.size() && std::getline(lines, function);) {
      if (function.empty()) {  // the end of a stack
        ++i;
        continue;
      }
      std::string place;
      std::getline(lines, place);
      stacks[i].push_back(ReadFrame(function, place));
    }
    return stacks;
  }

  // "NAME" or "NAME inlined at PLACE in NAME", "FILE:LINE" or "FILE:LINE:COLUMN".
  static Frame ReadFrame(const std::string& function, const std::string& place) {
    Frame frame{.function = function.substr(0, function.find(" inlined "))};
    if (frame.function == "??") frame.function.clear();
    const size_t colon = place.find(':');
    frame.file = place.substr(0, colon);
    frame.line = std::strtoull(place.c_str() + colon + 1, nullptr, 10);
    if (frame.file == "??") frame.file.clear();
    if (!frame.file.empty()) frame.file = std::filesystem::path(frame.file).lexically_normal();
    return frame;
  }

  SourceLines Ask(const std::string& path, const std::vector<uint64_t>& addresses) {
    constexpr size_t kAtOnce = 1000;
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    SourceLines all;
    for (size_t at = 0; at < addresses.size(); at += kAtOnce) {
      const std::span some =
          std::span(addresses).subspan(at, std::min(kAtOnce, addresses.size() - at));
      const Result<SourceLines> lines =
          RequestLines(parser_.get(), std::array{fd.get()}, some, kLongTime);
      EXPECT_TRUE(lines.ok()) << lines.status();
      if (!lines.ok()) return all;
      all.problem = lines->problem;
      for (SourceLines::Address address : lines->addresses) {
        address.first += static_cast<uint32_t>(all.frames.size());
        all.addresses.push_back(address);
      }
      for (SourceLines::Frame frame : lines->frames) {
        frame.function += static_cast<uint32_t>(all.texts.size());
        frame.file += static_cast<uint32_t>(all.texts.size());
        all.frames.push_back(frame);
      }
      all.texts.insert(all.texts.end(), lines->texts.begin(), lines->texts.end());
    }
    return all;
  }

  static Stack StackOf(const SourceLines& lines, size_t number) {
    Stack stack;
    const SourceLines::Address& address = lines.addresses[number];
    for (uint32_t k = 0; k < address.count; ++k) {
      const SourceLines::Frame& frame = lines.frames[address.first + k];
      std::string file = lines.texts[frame.file];
      if (!file.empty()) file = std::filesystem::path(file).lexically_normal();
      stack.push_back({lines.texts[frame.function], file, frame.line});
    }
    return stack;
  }

  void Compare(const std::string& path, double least_found) {
    const std::vector<uint64_t> addresses = CodeOf(path);
    const std::vector<Stack> llvm = AskLlvm(path, addresses);
    const SourceLines lines = Ask(path, addresses);
    ASSERT_EQ(lines.addresses.size(), addresses.size());
    EXPECT_EQ(lines.problem, LineProblem::kNone);
    size_t found = 0;
    size_t inlined = 0;
    // elfutils takes 4 ms for each: it is asked where LLVM says otherwise, and for some of the
    // rest.
    constexpr size_t kStride = 20;
    std::vector<size_t> numbers;
    std::vector<uint64_t> questions;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const Stack stack = StackOf(lines, i);
      if (!stack.empty() && stack[0].line != 0) ++found;
      if (stack.size() > 1) ++inlined;
      if (i % kStride != 0 && AgreeButForTheLastName(llvm[i], stack)) continue;
      numbers.push_back(i);
      questions.push_back(addresses[i]);
    }
    const std::vector<Stack> elfutils = AskOracle(path, questions);
    ASSERT_EQ(elfutils.size(), questions.size());
    size_t disputed = 0;
    size_t wrong = 0;
    for (size_t k = 0; k < numbers.size(); ++k) {
      const size_t i = numbers[k];
      const Stack stack = StackOf(lines, i);
      const bool as_llvm = AgreeButForTheLastName(llvm[i], stack);
      const bool as_elfutils = Agree(elfutils[k], stack);
      if (as_llvm != as_elfutils) ++disputed;
      if (as_llvm || as_elfutils || ++wrong > 5) continue;
      ADD_FAILURE() << std::hex << addresses[i] << ToText(elfutils[k]) << "\n  or"
                    << ToText(llvm[i]) << "\n  not" << ToText(stack);
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_GE(static_cast<double>(found), least_found * static_cast<double>(addresses.size()));
    EXPECT_GT(inlined, addresses.size() / 10);
    std::printf("%s: %zu addresses, lines of %zu, inlined %zu, disputed %zu, wrong %zu\n",
                path.c_str(), addresses.size(), found, inlined, disputed, wrong);
  }

  // The oracle has no scopes for functions without a name for the linker.
  static bool SameName(const std::string& oracle, const std::string& ours) {
    return ours == oracle || ours.ends_with("::" + oracle);
  }
  static bool Agree(const Stack& oracle, const Stack& ours) {
    if (ours.empty()) return oracle.size() == 1 && oracle[0].file.empty();
    return std::ranges::equal(oracle, ours, [](const Frame& a, const Frame& b) {
      return a.file == b.file && a.line == b.line && SameName(a.function, b.function);
    });
  }
  // LLVM takes the name of the function that is not inlined from the symbol table. Between
  // functions it knows no line, as we, where elfutils takes that of the function before.
  static bool AgreeButForTheLastName(Stack oracle, const Stack& ours) {
    if (oracle.empty()) return false;
    if (ours.empty()) return oracle.size() == 1 && oracle[0].file.empty();
    oracle.back().function = ours.back().function;
    return Agree(oracle, ours);
  }

  TempDir directory_;
  std::shared_ptr<ParserProcess> parser_ = ParserProcess::Installed();
};

const std::string kProgram4 = FF_LINES_PROGRAM "4";
const std::string kProgram5 = FF_LINES_PROGRAM "5";

TEST_F(LinesTest, OfAProgramWithDwarf4) {
  Compare(kProgram4, 0.9);
}

TEST_F(LinesTest, OfAProgramWithDwarf5) {
  Compare(kProgram5, 0.9);
}

TEST_F(LinesTest, OfAProgramOfClang) {
  const std::string program = directory_.path() + "/program";
  const CommandResult made = RunCommand({"clang++", "-std=c++20", "-O2", "-g", "-gdwarf-5",
                                         "-gdwarf-aranges", FF_LINES_SOURCE, "-o", program});
  if (made.exit_code != 0) FF_SKIP("clang++ is not installed");
  Compare(program, 0.75);  // it gives no line to much that it made
}

TEST_F(LinesTest, OfCompressedSections) {
  const std::string program = directory_.path() + "/program";
  MustRun({"objcopy", "--compress-debug-sections=zlib", kProgram5, program});
  Compare(program, 0.9);
}

TEST_F(LinesTest, WithoutTimeEveryAddressIsLate) {
  const std::vector<uint64_t> addresses = CodeOf(kProgram5);
  const UniqueFd fd(::open(kProgram5.c_str(), O_RDONLY | O_CLOEXEC));
  const Result<SourceLines> lines =
      RequestLines(parser_.get(), std::array{fd.get()}, std::span(addresses).first(64),
                   std::chrono::nanoseconds(-1'000'000'000));
  // The answer comes: the parser looks at the clock, and nobody has to wait for its end.
  ASSERT_TRUE(lines.ok()) << lines.status();
  for (const SourceLines::Address& address : lines->addresses)
    EXPECT_EQ(address.state, SourceLines::State::kLate);
  EXPECT_EQ(parser_->counts().deaths, 0u);
}

TEST_F(LinesTest, AFileWithoutDwarfSaysSo) {
  const std::string program = directory_.path() + "/program";
  MustRun({"strip", "--strip-debug", "-o", program, kProgram5});
  const SourceLines lines = Ask(program, {0x1000, 0x1001});
  EXPECT_EQ(lines.problem, LineProblem::kAbsent);
}

TEST_F(LinesTest, SplitDwarfIsRefusedByName) {
  const std::string program = directory_.path() + "/program";
  const CommandResult made =
      RunCommand({"g++", "-std=c++20", "-g", "-gsplit-dwarf", FF_LINES_SOURCE, "-o", program});
  if (made.exit_code != 0) FF_SKIP("g++ is not installed");
  const std::vector<uint64_t> addresses = CodeOf(program);
  const SourceLines lines = Ask(program, addresses);
  EXPECT_EQ(lines.problem, LineProblem::kSplit);
}

TEST_F(LinesTest, MoreUnitsThanTheBoundAreTooLarge) {
  const std::string program = directory_.path() + "/program";
  const std::string section = directory_.path() + "/section";
  // Of length 8, version 4, abbreviations at 0, addresses of 8 bytes, no entry.
  constexpr std::string_view kUnit("\x08\0\0\0\x04\0\0\0\0\0\x08\0", 12);
  {
    std::ofstream bytes(section, std::ios::binary);
    for (size_t i = 0; i < kMaxDwarfUnits + 2; ++i)
      bytes << kUnit;
  }
  MustRun({"objcopy", "--update-section=.debug_info=" + section, kProgram5, program});
  const SourceLines lines = Ask(program, {0x1000});
  EXPECT_EQ(lines.problem, LineProblem::kTooLarge);
  EXPECT_EQ(parser_->counts().deaths, 0u);
}

TEST_F(LinesTest, ASectionThatUnpacksToMoreThanTheBoundIsTooLarge) {
  const std::string program = directory_.path() + "/program";
  const std::string section = directory_.path() + "/section";
  std::ofstream(section).close();
  std::filesystem::resize_file(section, kMaxUnpackedDwarfBytes + 1);
  MustRun({"objcopy", "--update-section=.debug_str=" + section, kProgram5, program});
  MustRun({"objcopy", "--compress-debug-sections=zlib", program});
  const SourceLines lines = Ask(program, {0x1000});
  EXPECT_EQ(lines.problem, LineProblem::kTooLarge);
  EXPECT_EQ(parser_->counts().deaths, 0u);
}

TEST_F(LinesTest, MutatedDwarfNeverKillsTheParser) {
  const std::string whole = *ReadFile(kProgram5, 8 << 20);
  const std::vector<uint64_t> addresses = CodeOf(kProgram5);
  const std::span some = std::span(addresses).first(256);
  const UniqueFd original(::open(kProgram5.c_str(), O_RDONLY | O_CLOEXEC));
  const ElfFile elf = *ReadElfFile(original.get());
  std::mt19937 random(17);
  size_t answers = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 8; ++i) {
      const std::optional<ElfFile::Section>& section = elf.dwarf[random() % kDwarfSectionCount];
      // The beginnings are headers.
      if (!section) continue;
      const uint64_t range = i % 2 == 0 ? std::min<uint64_t>(section->size, 64) : section->size;
      bytes[section->offset + random() % range] = static_cast<char>(random());
    }
    if (round % 8 == 0) bytes.resize(random() % bytes.size());
    const std::string path = directory_.path() + "/bad";
    std::ofstream(path, std::ios::binary) << bytes;
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const Result<SourceLines> lines =
        RequestLines(parser_.get(), std::array{fd.get()}, some, kLongTime);
    if (lines.ok()) ++answers;
  }
  EXPECT_GT(answers, 200u);
  EXPECT_EQ(parser_->counts().deaths, 0u);
  Compare(kProgram5, 0.9);
}

// As the agent asks: through the cache, with the debug file that belongs to the program.
TEST_F(LinesTest, OfAStrippedProgramComeFromItsDebugFile) {
  const std::string program = directory_.path() + "/program";
  MustRun({"objcopy", "--only-keep-debug", kProgram5, program + ".debug"});
  MustRun({"strip", "--strip-all", "-o", program, kProgram5});
  MustRun({"objcopy", "--add-gnu-debuglink=" + program + ".debug", program});
  const auto root = RootDirectory::Open("/proc", static_cast<uint32_t>(::getpid()));
  const auto mapping = [&](const std::string& path) {
    return ImageMapping{.start = 0,
                        .end = UINT64_MAX,
                        .path = path,
                        .file = std::make_shared<const MappedFile>(*root->OpenFile(path))};
  };
  const ProcessImage image{.root = root};
  const ImageMapping stripped = mapping(program);
  const ImageMapping whole = mapping(kProgram5);
  Symbolizer symbolizer("/proc", 64 << 20, parser_);
  const UniqueFd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  const ElfFile elf = *ReadElfFile(fd.get());
  std::vector<uint64_t> offsets;
  for (const uint64_t address : CodeOf(kProgram5)) {
    for (const ElfFile::Segment& segment : elf.segments) {
      if (address - segment.address < segment.size)
        offsets.push_back(address - segment.address + segment.offset);
    }
  }
  offsets.resize(1000);
  for (const uint64_t offset : offsets) {
    symbolizer.WantLines(image, stripped, offset);
    symbolizer.WantLines(image, whole, offset);
  }
  for (int windows = 0; windows < 20; ++windows)  // a busy machine may need more than one
    symbolizer.ResolveLines();
  size_t inlined = 0;
  for (const uint64_t offset : offsets) {
    const auto frames = [&](const ImageMapping& from) {
      Stack stack;
      for (const Symbolizer::Frame& frame : symbolizer.UserFrames(image, from, offset))
        // What has no name is called after its file.
        stack.push_back({frame.name->system_name, std::string(frame.file), frame.line});
      return stack;
    };
    const Stack wanted = frames(whole);
    EXPECT_EQ(frames(stripped), wanted) << ToText(wanted);
    if (wanted.size() > 1) ++inlined;
  }
  EXPECT_GT(inlined, 100u);
  // Off by the field of the AgentPool.
  symbolizer.SetLines(false);
  EXPECT_EQ(symbolizer.UserFrames(image, whole, offsets[0]).size(), 1u);
}

}  // namespace
}  // namespace flamefleet::agent
