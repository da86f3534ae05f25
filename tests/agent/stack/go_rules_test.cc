// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/go_rules.h"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "agent/stack/unwind_table.h"
#include "tests/agent/stack/oracle_file.h"
#include "tests/support/command.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace flamefleet::agent {
namespace {

using flamefleet::testing::OracleFile;

constexpr uint64_t kText = 0x400000;
constexpr uint8_t kOutermost = 1;
constexpr uint8_t kMovesToAnyStack = 2;

// Writes a .gopclntab of functions one after the other.
class GoSection {
 public:
  explicit GoSection(bool has_lines = true) : has_lines_(has_lines) {}

  // `steps`: the depth of the stack, and for how many bytes of the function.
  GoSection& Add(uint8_t flags, const std::vector<std::pair<int, uint8_t>>& steps,
                 uint32_t padding = 0) {
    std::string program;
    int depth = -1;
    uint32_t size = padding;
    for (const auto& [next, bytes] : steps) {
      const int change = next - depth;
      const int zigzag = change < 0 ? -2 * change - 1 : 2 * change;
      program += static_cast<char>((zigzag & 0x7f) | 0x80);
      program += static_cast<char>(zigzag >> 7);
      program += static_cast<char>(bytes);
      size += bytes;
      depth = next;
    }
    program += '\0';
    return AddRaw(flags, program, size);
  }

  GoSection& AddRaw(uint8_t flags, const std::string& program, uint32_t size) {
    functions_.push_back({end_, static_cast<uint32_t>(programs_.size()), flags});
    programs_ += program;
    end_ += size;
    return *this;
  }

  std::string Bytes() const {
    constexpr uint64_t kHead = 72;
    constexpr uint64_t kNames = 8;
    constexpr uint64_t kFunctionBytes = 48;
    const uint64_t programs_at = kHead + kNames;
    const uint64_t functions_at = programs_at + programs_.size();
    std::string bytes;
    Append(&bytes, has_lines_ ? 0xfffffff1U : 0xfffffff0U);
    bytes += std::string("\0\0\1\10", 4);
    for (const uint64_t word : {uint64_t{functions_.size()}, uint64_t{0}, kText, kHead, programs_at,
                                programs_at, programs_at, functions_at})
      Append(&bytes, word);
    bytes += std::string(kNames, 'n') + programs_;
    const size_t rows = functions_.size() * 8 + 4;
    for (size_t i = 0; i < functions_.size(); ++i) {
      Append(&bytes, functions_[i].entry);
      Append(&bytes, static_cast<uint32_t>(rows + i * kFunctionBytes));
    }
    Append(&bytes, end_);
    for (const Function& function : functions_) {
      std::string what(kFunctionBytes, '\0');
      std::memcpy(what.data() + 16, &function.program, sizeof(function.program));
      what[has_lines_ ? 41 : 37] = static_cast<char>(function.flags);
      bytes += what;
    }
    return bytes;
  }

 private:
  struct Function {
    uint32_t entry = 0;
    uint32_t program = 0;
    uint8_t flags = 0;
  };

  template <typename T>
  static void Append(std::string* bytes, T value) {
    bytes->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  bool has_lines_;
  std::vector<Function> functions_;
  std::string programs_ = std::string(1, '\0');  // offset 0: there is none
  uint32_t end_ = 0;
};

// "address:cfa+offset bp+offset" of each row; addresses count from the beginning of the code.
std::string Rows(const std::string& section) {
  ElfFile elf;
  elf.go_pclntab = {.size = section.size()};
  std::ostringstream text;
  const auto visit = [&text](uint64_t, uint64_t end, std::span<const CfiRow> rows) {
    for (const CfiRow& row : rows) {
      text << row.pc - kText << ":" << int{row.rule.cfa} << "+" << row.rule.cfa_offset << " "
           << int{row.rule.bp} << "+" << row.rule.bp_offset << "; ";
    }
    text << "to " << end - kText << "; ";
  };
  const Status status = ReadGoRules(ByteSource(section), elf, visit);
  if (!status.ok()) text << ErrorCodeName(status);
  return text.str();
}

TEST(GoRules, TheCallerOfAFunctionWithoutAFrameIsAtTheStackPointer) {
  EXPECT_EQ(Rows(GoSection().Add(0, {{0, 20}}, 12).Bytes()), "0:1+8 0+0; to 32; ");
}

TEST(GoRules, AFrameHasTheFramePointerBelowTheReturnAddress) {
  const std::string rows = "0:1+8 0+0; 1:1+16 1+-16; 8:1+128 1+-16; 100:1+8 0+0; to 101; ";
  EXPECT_EQ(Rows(GoSection().Add(0, {{0, 1}, {8, 7}, {120, 92}, {0, 1}}).Bytes()), rows);
  EXPECT_EQ(Rows(GoSection(false).Add(0, {{0, 1}, {8, 7}, {120, 92}, {0, 1}}).Bytes()), rows);
}

TEST(GoRules, AnOutermostFunctionEndsTheStack) {
  EXPECT_EQ(Rows(GoSection().Add(kOutermost, {{0, 20}}).Bytes()), "0:6+0 0+0; to 20; ");
  EXPECT_EQ(Rows(GoSection(false).Add(kOutermost, {{0, 20}}).Bytes()), "0:6+0 0+0; to 20; ");
}

TEST(GoRules, AChangeOfStacksIsFollowedByFramePointer) {
  EXPECT_EQ(Rows(GoSection().Add(kMovesToAnyStack, {{0, 1}, {8, 50}, {0, 1}}).Bytes()),
            "0:1+8 0+0; 1:7+0 1+-16; 51:1+8 0+0; to 52; ");
  EXPECT_EQ(Rows(GoSection().Add(kMovesToAnyStack, {{0, 20}}).Bytes()), "0:7+0 1+-16; to 20; ");
}

TEST(GoRules, ADamagedFunctionIsLeftOut) {
  const std::string endless(9, '\x80');
  EXPECT_EQ(Rows(GoSection()
                     .AddRaw(0, std::string("\2\0", 2), 16)   // for no bytes
                     .AddRaw(0, std::string("\2\4", 2), 0)    // no size
                     .AddRaw(0, std::string("\3\4\0", 3), 4)  // below the return address
                     .Add(0, {{0, 4}})
                     .AddRaw(0, endless, 16)
                     .Bytes()),
            "16:0+0 0+0; to 20; 20:1+8 0+0; to 24; ");
}

TEST(GoRules, SectionsOfOtherKindsAreRefused) {
  const std::string section = GoSection().Add(0, {{0, 20}}).Bytes();
  EXPECT_EQ(Rows(section.substr(0, 60)), "INVALID_ARGUMENT");
  EXPECT_EQ(Rows("\xfb" + section.substr(1)), "INVALID_ARGUMENT");  // Go 1.15
  EXPECT_EQ(Rows(section.substr(0, 90)), "INVALID_ARGUMENT");
}

// The .debug_frame of Go's linker, read by libdw, which says the same of the stack pointer.
class Oracle {
 public:
  Oracle(Elf* elf, unsigned sp) : dwarf_(dwarf_begin_elf(elf, DWARF_C_READ, nullptr)), sp_(sp) {}
  ~Oracle() { dwarf_end(dwarf_); }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  // The offset of the CFA from the stack pointer; -1 when it is not known.
  int64_t Find(uint64_t address) const {
    Dwarf_Frame* frame = nullptr;
    Dwarf_CFI* const cfi = dwarf_getcfi(dwarf_);
    if (cfi == nullptr || dwarf_cfi_addrframe(cfi, address, &frame) != 0) return -1;
    const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> owner(frame, &std::free);
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    constexpr unsigned kBregx = 0x92;
    constexpr unsigned kBreg0 = 0x70;
    if (dwarf_frame_cfa(frame, &ops, &count) != 0 || count != 1) return -1;
    if (ops[0].atom == kBregx && ops[0].number == sp_) return static_cast<int64_t>(ops[0].number2);
    return ops[0].atom == kBreg0 + sp_ ? static_cast<int64_t>(ops[0].number) : -1;
  }

 private:
  Dwarf* const dwarf_;
  const unsigned sp_;
};

struct Processor {
  const char* name;
  unsigned sp;
};

class GoRulesOf : public ::testing::TestWithParam<Processor> {};

TEST_P(GoRulesOf, AgreeWithLibdwOnARealProgram) {
  if (RunCommand({"go", "version"}).exit_code != 0) FF_SKIP("go is not installed");
  const TempDir directory;
  const std::string program = directory.path() + "/shares";
  const CommandResult built = RunCommand({"env", std::string("GOARCH=") + GetParam().name, "go",
                                          "build", "-o", program, FF_GO_PROGRAM});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const OracleFile file(program);
  const UniqueFd fd = *OpenFile(program, O_RDONLY);
  const ByteSource source(fd.get());
  const ElfFile elf = *ReadElfFile(source);
  const Result<UnwindTable> table = UnwindTable::Build(
      {}, 0, {}, [&](const CfiVisitor& visit) { return ReadGoRules(source, elf, visit); });
  ASSERT_TRUE(table.ok()) << table.status();
  const Oracle oracle(file.elf(), GetParam().sp);
  constexpr int kAddresses = 20'000;
  std::mt19937_64 random(1);
  std::uniform_int_distribution<uint64_t> any(file.code_start(), file.code_end() - 1);
  int known = 0;
  int disagreements = 0;
  for (int i = 0; i < kAddresses; ++i) {
    const uint64_t address = any(random);
    const ff_unwind_rule ours = table->Find(address);
    const int64_t theirs = oracle.Find(address);
    if (ours.cfa != FF_CFA_SP || theirs < 0) continue;
    ++known;
    if (ours.cfa_offset == theirs || ++disagreements > 10) continue;
    ADD_FAILURE() << std::hex << address << ": " << ours.cfa_offset << " but libdw " << theirs;
  }
  EXPECT_EQ(disagreements, 0);
  EXPECT_GT(known, kAddresses * 8 / 10);
}

INSTANTIATE_TEST_SUITE_P(Processors, GoRulesOf,
                         ::testing::Values(Processor{"amd64", 7}, Processor{"arm64", 31}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace flamefleet::agent
