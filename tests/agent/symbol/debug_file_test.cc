// SPDX-License-Identifier: Apache-2.0
// Names against elfutils' eu-addr2line, for 5,000 addresses each, of programs that have their
// symbols in one place or another.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "agent/symbol/elf_file.h"
#include "agent/symbol/symbolizer.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kAddresses = 5000;

void MustRun(const std::vector<std::string>& argv) {
  const CommandResult result = RunCommand(argv);
  ASSERT_EQ(result.exit_code, 0) << argv[0] << ": " << result.err;
}

class NamesTest : public ::testing::Test {
 protected:
  // Addresses of code, evenly spread by chance.
  static std::vector<uint64_t> CodeOf(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const ElfFile elf = *ReadElfFile(fd.get());
    std::mt19937_64 random(5);
    std::vector<uint64_t> addresses;
    uint64_t total = 0;
    for (const ElfFile::AddressRange& range : elf.code)
      total += range.end - range.start;
    while (addresses.size() < kAddresses) {
      uint64_t at = random() % total;
      for (const ElfFile::AddressRange& range : elf.code) {
        const uint64_t size = range.end - range.start;
        if (at < size) {
          addresses.push_back(range.start + at);
          break;
        }
        at -= size;
      }
    }
    return addresses;
  }

  struct Oracle {
    std::string name;    // "": none
    uint64_t start = 0;  // of the function
  };
  static std::vector<Oracle> AskOracle(const std::string& path,
                                       const std::vector<uint64_t>& addresses) {
    std::ostringstream input;
    for (const uint64_t address : addresses)
      input << "0x" << std::hex << address << "\n";
    const CommandResult result = RunCommand({"eu-addr2line", "-S", "-e", path}, input.str());
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<Oracle> answers;
    std::istringstream lines(result.out);
    std::string symbol;
    for (std::string place; std::getline(lines, symbol) && std::getline(lines, place);) {
      Oracle answer;
      const size_t plus = symbol.rfind("+0x");
      const uint64_t offset =
          plus == std::string::npos ? 0 : std::strtoull(symbol.c_str() + plus + 1, nullptr, 16);
      answer.name = symbol.substr(0, plus);
      answer.name.resize(std::min(answer.name.find('@'), answer.name.size()));  // its version
      // Go's symbols say by which convention a function is called, its own table does not.
      if (answer.name.ends_with(".abi0")) answer.name.resize(answer.name.size() - 5);
      if (answer.name.starts_with("(") || answer.name == "??") answer.name.clear();
      answer.start = addresses[answers.size()] - offset;
      answers.push_back(answer);
    }
    return answers;
  }

  std::shared_ptr<const MappedFile> Open(const std::string& path) {
    Result<MappedFile> file = root_->OpenFile(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return std::make_shared<const MappedFile>(*std::move(file));
  }

  // `program` by us against `oracle`, a file of equal code, by elfutils. Every name must be the
  // oracle's or that of a function that begins at the same place.
  void Compare(const std::string& program, const std::string& oracle, double least_named) {
    const std::vector<uint64_t> addresses = CodeOf(program);
    const std::vector<Oracle> wanted = AskOracle(oracle, addresses);
    ASSERT_EQ(wanted.size(), addresses.size());
    const UniqueFd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
    const ElfFile elf = *ReadElfFile(fd.get());
    const ProcessImage image{.root = root_};
    const ImageMapping mapping{
        .start = 0, .end = UINT64_MAX, .path = program, .file = Open(program)};
    std::map<uint64_t, std::set<std::string>> names_at;
    for (const Oracle& answer : wanted)
      names_at[answer.start].insert(answer.name);
    size_t named = 0;
    size_t wrong = 0;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const uint64_t offset = OffsetOf(elf, addresses[i]);
      const SymbolName& name = symbolizer_.UserName(image, mapping, offset);
      if (name.system_name.empty() || wanted[i].name.empty()) continue;
      ++named;
      const bool same =
          WithoutDots(name.system_name) == wanted[i].name || IsAlias(oracle, wanted[i], name);
      if (!same && ++wrong <= 5) {
        ADD_FAILURE() << std::hex << addresses[i] << " is in " << wanted[i].name << ", not in "
                      << name.system_name;
      }
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_GE(static_cast<double>(named), least_named * kAddresses);
    std::printf("%s: %zu of %zu addresses named, %zu wrong\n", program.c_str(), named,
                addresses.size(), wrong);
  }

  // Go's symbols have a dot where its own table has the middle dot of its assembler.
  static std::string WithoutDots(std::string name) {
    constexpr std::string_view kMiddleDot = "\xc2\xb7";
    for (size_t at = name.find(kMiddleDot); at != std::string::npos; at = name.find(kMiddleDot))
      name.replace(at, kMiddleDot.size(), ".");
    return name;
  }

  static uint64_t OffsetOf(const ElfFile& elf, uint64_t address) {
    for (const ElfFile::Segment& segment : elf.segments) {
      if (address >= segment.address && address - segment.address < segment.size)
        return address - segment.address + segment.offset;
    }
    return UINT64_MAX;
  }

  // Whether nm has the name where the oracle's function begins.
  bool IsAlias(const std::string& oracle, const Oracle& wanted, const SymbolName& name) {
    if (aliases_.empty()) {
      for (const char* const option : {"-a", "-D"}) {
        std::istringstream lines(RunCommand({"nm", option, oracle}).out);
        for (std::string line; std::getline(lines, line);) {
          constexpr size_t kNameColumn = 19;
          if (line.size() <= kNameColumn) continue;
          std::string text = line.substr(kNameColumn);
          text.resize(std::min(text.find('@'), text.size()));
          aliases_.emplace(text, std::strtoull(line.c_str(), nullptr, 16));
        }
      }
    }
    const auto [first, last] = aliases_.equal_range(name.system_name);
    return std::any_of(first, last, [&](const auto& item) { return item.second == wanted.start; });
  }

  // A copy of this program, which has symbols and DWARF.
  std::string Copy(const std::string& name) {
    const std::string path = directory_.path() + "/" + name;
    std::filesystem::copy_file("/proc/self/exe", path);
    return path;
  }

  TempDir directory_;
  std::shared_ptr<const RootDirectory> root_ =
      RootDirectory::Open("/proc", static_cast<uint32_t>(::getpid()));
  Symbolizer symbolizer_{"/proc", 64 << 20};
  std::multimap<std::string, uint64_t> aliases_;
};

TEST_F(NamesTest, OfAProgramWithDwarf) {
  const std::string program = Copy("program");
  Compare(program, program, 0.9);
}

TEST_F(NamesTest, OfAProgramWithSymbolsOnly) {
  const std::string program = Copy("program");
  const std::string whole = Copy("whole");
  MustRun({"strip", "--strip-debug", program});
  Compare(program, whole, 0.9);
}

TEST_F(NamesTest, OfAStrippedProgramWithADebugFileBesideIt) {
  const std::string program = Copy("program");
  const std::string whole = Copy("whole");
  MustRun({"objcopy", "--only-keep-debug", program, program + ".debug"});
  MustRun({"strip", "--strip-all", program});
  MustRun({"objcopy", "--add-gnu-debuglink=" + program + ".debug", program});
  Compare(program, whole, 0.9);
}

TEST_F(NamesTest, OfAStrippedProgramWithItsChecksumOnly) {
  const std::string program = Copy("program");
  const std::string whole = Copy("whole");
  const std::string debug = directory_.path() + "/.debug/program.debug";
  std::filesystem::create_directory(directory_.path() + "/.debug");
  for (const std::string& file : {program, whole})
    MustRun({"objcopy", "--remove-section=.note.gnu.build-id", file});
  MustRun({"objcopy", "--only-keep-debug", program, debug});
  MustRun({"strip", "--strip-all", program});
  MustRun({"objcopy", "--add-gnu-debuglink=" + debug, program});
  Compare(program, whole, 0.9);
}

TEST_F(NamesTest, ADebugFileOfAnotherProgramNamesNothing) {
  const std::string program = Copy("program");
  const std::string debug = program + ".debug";
  MustRun({"objcopy", "--only-keep-debug", program, debug});
  MustRun({"strip", "--strip-all", program});
  MustRun({"objcopy", "--add-gnu-debuglink=" + debug, program});
  MustRun({"objcopy", "--remove-section=.note.gnu.build-id", program});
  std::filesystem::copy_file("/bin/true", debug, std::filesystem::copy_options::overwrite_existing);
  const ProcessImage image{.root = root_};
  const ImageMapping mapping{.start = 0, .end = UINT64_MAX, .path = program, .file = Open(program)};
  const UniqueFd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  const ElfFile elf = *ReadElfFile(fd.get());
  const uint64_t offset = OffsetOf(elf, elf.text->address + 0x100);
  EXPECT_TRUE(symbolizer_.UserName(image, mapping, offset).name.starts_with("program+0x"));
}

TEST_F(NamesTest, OfAProgramWithCompressedSymbols) {
  const std::string program = Copy("program");
  const std::string whole = Copy("whole");
  const std::string symbols = directory_.path() + "/symbols";
  // As distributions make it: without sections but for the symbols, in xz.
  MustRun({"objcopy", "--only-keep-debug", "--remove-section=.debug*", whole, symbols});
  MustRun({"strip", "--strip-debug", symbols});
  MustRun({"xz", "--force", symbols});
  MustRun({"strip", "--strip-all", program});
  MustRun({"objcopy", "--add-section=.gnu_debugdata=" + symbols + ".xz", program});
  Compare(program, whole, 0.9);
}

TEST_F(NamesTest, OfASharedLibraryWithDynamicSymbolsOnly) {
  const std::string library =
      std::filesystem::canonical("/usr/lib/x86_64-linux-gnu/libstdc++.so.6").string();
  Compare(library, library, 0.5);
}

TEST_F(NamesTest, OfAStrippedGoProgram) {
  const CommandResult root = RunCommand({"go", "env", "GOROOT"});
  if (root.exit_code != 0) FF_SKIP("go is not installed");
  const std::string whole = root.out.substr(0, root.out.find('\n')) + "/bin/gofmt";
  const std::string program = directory_.path() + "/gofmt";
  std::filesystem::copy_file(whole, program);
  MustRun({"strip", "--strip-all", program});
  Compare(program, whole, 0.95);
}

}  // namespace
}  // namespace flamefleet::agent
