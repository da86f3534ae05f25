// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/cfi.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "agent/stack/unwind_table.h"
#include "tests/agent/stack/oracle_file.h"
#include "tests/support/command.h"

namespace flamefleet::agent {
namespace {

using flamefleet::testing::OracleFile;

constexpr char kLibc[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
constexpr uint64_t kAddress = 0x10000;  // of the sections made here
constexpr uint64_t kFunction = 0x4000;
constexpr uint64_t kFunctionSize = 0x100;

// Writes an .eh_frame: one CIE, then FDEs for functions of kFunctionSize bytes.
class EhFrame {
 public:
  EhFrame() {
    // Version 1, "zR", code alignment 1, data alignment -8, return address in 16, pointers as
    // absolute 8 bytes. CFA = sp + 8, return address at CFA - 8.
    AddEntry(0, {1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x00, 0x0c, 7, 8, 0x90, 1});
  }

  // Code alignment 4, return address in 30, CFA = sp.
  static EhFrame OfArm64(const std::string& augmentation = "zR") {
    std::vector<uint8_t> cie = {1};
    cie.insert(cie.end(), augmentation.begin(), augmentation.end());
    cie.insert(cie.end(), {0, 4, 0x78, 30, 1, 0x00, 0x0c, 31, 0});
    EhFrame section{0};
    section.AddEntry(0, cie);
    return section;
  }

  EhFrame& AddFunction(uint64_t start, std::vector<uint8_t> instructions) {
    std::vector<uint8_t> body;
    Append(&body, start);
    Append(&body, kFunctionSize);
    body.push_back(0);  // no augmentation data
    body.insert(body.end(), instructions.begin(), instructions.end());
    AddEntry(static_cast<uint32_t>(bytes_.size() + 4), body);
    return *this;
  }

  EhFrame& AddBytes(const std::vector<uint8_t>& bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  explicit EhFrame(int) {}

  template <typename T>
  static void Append(std::vector<uint8_t>* bytes, T value) {
    const auto* const first = reinterpret_cast<const uint8_t*>(&value);
    bytes->insert(bytes->end(), first, first + sizeof(value));
  }

  void AddEntry(uint32_t id, const std::vector<uint8_t>& body) {
    Append(&bytes_, static_cast<uint32_t>(body.size() + sizeof(id)));
    Append(&bytes_, id);
    AddBytes(body);
  }

  std::vector<uint8_t> bytes_;
};

// "cfa+offset bp+offset" of each row, by its distance from the function's start.
std::string Rows(const EhFrame& section) {
  std::ostringstream text;
  const Status status = ReadEhFrame(
      section.bytes(), kAddress, [&text](uint64_t start, uint64_t, std::span<const CfiRow> rows) {
        for (const CfiRow& row : rows) {
          text << row.pc - start << ":" << int{row.rule.cfa} << "+" << row.rule.cfa_offset << " "
               << int{row.rule.bp} << "+" << row.rule.bp_offset << "; ";
        }
      });
  if (!status.ok()) text << ErrorCodeName(status);
  return text.str();
}

TEST(Cfi, PrologueGivesARowPerStep) {
  // push rbp; mov rbp, rsp
  EXPECT_EQ(Rows(EhFrame().AddFunction(kFunction, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6})),
            "0:1+8 0+0; 1:1+16 1+-16; 4:2+16 1+-16; ");
}

TEST(Cfi, RestoredStateIncludesTheCfa) {
  EXPECT_EQ(Rows(EhFrame().AddFunction(kFunction, {0x0a, 0x41, 0x0e, 32, 0x41, 0x0b})),
            "0:1+8 0+0; 1:1+32 0+0; 2:1+8 0+0; ");
}

TEST(Cfi, UndefinedReturnAddressEndsTheStack) {
  EXPECT_EQ(Rows(EhFrame().AddFunction(kFunction, {0x07, 16})), "0:6+0 0+0; ");
}

TEST(Cfi, RealignedStackIsReadFromTheFramePointer) {
  // CFA = *(rbp - 8); rbp at rbp + 0
  EXPECT_EQ(
      Rows(EhFrame().AddFunction(kFunction, {0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0})),
      "0:3+-8 2+0; ");
}

TEST(Cfi, OnArm64TheReturnAddressIsInItsRegisterUntilItIsStored) {
  // stp x29, x30, [sp, #-32]!; mov x29, sp; ... ldp x29, x30, [sp], #32
  EXPECT_EQ(Rows(EhFrame::OfArm64().AddFunction(
                kFunction, {0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x48, 0xde, 0xdd, 0x0e, 0})),
            "0:1+0 0+0; 4:1+32 1+-32; 36:1+0 0+0; ");
  // str x30, [sp, #-16]!: the frame pointer stays where it is
  EXPECT_EQ(Rows(EhFrame::OfArm64().AddFunction(kFunction, {0x41, 0x0e, 16, 0x9e, 2})),
            "0:1+0 0+0; 4:1+16 4+-16; ");
  // Not as a pair: the return address counts.
  EXPECT_EQ(Rows(EhFrame::OfArm64().AddFunction(kFunction, {0x0e, 48, 0x9d, 2, 0x9e, 6})),
            "0:1+48 3+-48; ");
  EXPECT_EQ(Rows(EhFrame::OfArm64().AddFunction(kFunction, {0x0c, 29, 16, 0x9d, 2, 0x9e, 1})),
            "0:2+16 1+-16; ");
  EXPECT_EQ(Rows(EhFrame::OfArm64().AddFunction(kFunction, {0x07, 30})), "0:6+0 0+0; ");
}

TEST(Cfi, OnArm64ASignedReturnAddressHasTheSamePlace) {
  EXPECT_EQ(Rows(EhFrame::OfArm64("zRB").AddFunction(
                kFunction, {0x41, 0x2d, 0x41, 0x0e, 16, 0x9d, 2, 0x9e, 1})),
            "0:1+0 0+0; 4:1+0 0+0; 8:1+16 1+-16; ");
}

TEST(Cfi, OnArm64ASignalFrameIsReadAsTheKernelWritesIt) {
  EXPECT_EQ(Rows(EhFrame::OfArm64("zRS").AddFunction(kFunction, {0x0c, 29, 0, 0x9d, 0, 0x9e, 1})),
            "0:5+0 0+0; ");
}

TEST(Cfi, RuleThatDoesNotFitIsUnknown) {
  EXPECT_EQ(Rows(EhFrame().AddFunction(kFunction, {0x0c, 10, 0})), "0:0+0 0+0; ");  // r10
  EXPECT_EQ(Rows(EhFrame().AddFunction(kFunction, {0x11, 6, 0x80, 0x80, 0x02})), "0:0+0 0+0; ");
}

TEST(Cfi, DamagedEntryIsLeftOut) {
  EXPECT_EQ(Rows(EhFrame()
                     .AddFunction(kFunction, {0x3f})                           // no such opcode
                     .AddFunction(kFunction, {0x0b})                           // nothing to restore
                     .AddFunction(kFunction, {0x0e})                           // no operand
                     .AddFunction(kFunction, std::vector<uint8_t>(100, 0x0a))  // too deep
                     .AddFunction(kFunction, {0x0f, 0x7f, 0x76})               // too long a block
                     .AddFunction(kFunction, {})),
            "0:1+8 0+0; ");
}

TEST(Cfi, BrokenChainOfEntriesIsAnError) {
  EXPECT_EQ(Rows(EhFrame().AddFunction(kFunction, {}).AddBytes({0xff, 0, 0, 0, 1})),
            "0:1+8 0+0; DATA_LOSS");
  EXPECT_EQ(Rows(EhFrame().AddBytes({0xff, 0xff, 0xff, 0xff})), "DATA_LOSS");
}

// A .debug_frame: one CIE of version 4, an entry without content, an FDE.
std::vector<uint8_t> DebugFrame(uint64_t start, const std::vector<uint8_t>& instructions) {
  // Addresses of 8 bytes, no segments; the rest as in EhFrame.
  std::vector<uint8_t> bytes = {16, 0,    0,  0,    0xff, 0xff, 0xff, 0xff, 4, 0, 8, 0,
                                1,  0x78, 16, 0x0c, 7,    8,    0x90, 1,    0, 0, 0, 0};
  const auto append = [&bytes](auto value) {
    const auto* const first = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof(value));
  };
  append(static_cast<uint32_t>(4 + 16 + instructions.size()));
  append(uint32_t{0});  // where the CIE is
  append(start);
  append(kFunctionSize);
  bytes.insert(bytes.end(), instructions.begin(), instructions.end());
  return bytes;
}

TEST(UnwindTable, DebugFrameCountsWhereEhFrameSaysNothing) {
  EhFrame section;
  section.AddFunction(kFunction, {0x0e, 16});
  const auto build = [&section](uint64_t start, std::span<const std::byte> eh_frame) {
    const std::vector<uint8_t> debug_frame = DebugFrame(start, {0x0e, 32});
    return UnwindTable::Build(eh_frame, kAddress, std::as_bytes(std::span(debug_frame)));
  };
  const Result<UnwindTable> beside = build(kFunction + kFunctionSize, section.bytes());
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ(beside->Find(kFunction).cfa_offset, 16);
  EXPECT_EQ(beside->Find(kFunction + kFunctionSize).cfa_offset, 32);
  const Result<UnwindTable> same = build(kFunction, section.bytes());
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->Find(kFunction).cfa_offset, 16);
  const Result<UnwindTable> alone = build(kFunction, {});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(alone->Find(kFunction).cfa_offset, 32);
}

TEST(UnwindTable, ADamagedDebugFrameTakesNothingFromEhFrame) {
  EhFrame section;
  section.AddFunction(kFunction, {0x0e, 16});
  const std::vector<uint8_t> damaged = {0xff, 0, 0, 0, 1};
  const auto bytes = std::as_bytes(std::span(damaged));
  EXPECT_EQ(UnwindTable::Build(section.bytes(), kAddress, bytes)->Find(kFunction).cfa_offset, 16);
  EXPECT_EQ(UnwindTable::Build({}, 0, bytes).status().code(), StatusCode::kDataLoss);
}

TEST(UnwindTable, FirstOfTwoFunctionsInOnePlaceCounts) {
  EhFrame section;
  section.AddFunction(kFunction, {0x0e, 16}).AddFunction(kFunction + 0x10, {0x0e, 32});
  const Result<UnwindTable> table = UnwindTable::Build(section.bytes(), kAddress);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Find(kFunction + 0x20).cfa_offset, 16);
  EXPECT_EQ(table->Find(kFunction + kFunctionSize).cfa, FF_CFA_UNKNOWN);
  EXPECT_EQ(table->Find(kFunction - 1).cfa, FF_CFA_UNKNOWN);
}

TEST(UnwindTable, FunctionThatCrossesAPageIsFoundInBoth) {
  const uint64_t start = 0x1ffff0;
  EhFrame section;
  section.AddFunction(start, {0x0e, 16}).AddFunction(start + 0x200000, {0x0e, 32});
  const Result<UnwindTable> table = UnwindTable::Build(section.bytes(), kAddress);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->Find(0x1fffff).cfa_offset, 16);
  EXPECT_EQ(table->Find(0x200000).cfa_offset, 16);
  EXPECT_EQ(table->Find(0x300000).cfa, FF_CFA_UNKNOWN);
  EXPECT_EQ(table->Find(start + 0x200000).cfa_offset, 32);
}

TEST(UnwindTable, FunctionsFarApartAreRefused) {
  EhFrame section;
  section.AddFunction(kFunction, {}).AddFunction(uint64_t{1} << 40, {});
  EXPECT_EQ(UnwindTable::Build(section.bytes(), kAddress).status().code(),
            StatusCode::kResourceExhausted);
}

TEST(UnwindTable, SectionWithoutFunctionsGivesNone) {
  EXPECT_EQ(UnwindTable::Build(EhFrame().bytes(), kAddress).status().code(), StatusCode::kNotFound);
}

// Whatever comes out, nothing is read outside the section (the asan preset would tell).
TEST(UnwindTable, MutatedAndTruncatedSectionsAreSurvived) {
  const OracleFile file(kLibc);
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> bytes(file.eh_frame().begin(), file.eh_frame().end());
    for (int i = 0; i < 64; ++i)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    if (round % 2 == 0) bytes.resize(random() % bytes.size());
    const Result<UnwindTable> table = UnwindTable::Build(bytes, file.eh_frame_address());
    if (!table.ok()) continue;
    for (int i = 0; i < 100; ++i)
      table->Find(random() % (2 * file.code_end()));
  }
}

struct ReadelfRow {
  std::string cfa;
  std::string bp;
  std::string return_address;
};

// The rows of every function as `readelf -wF` prints them. (Its exit code is 1 for a file without
// debug sections, whatever it printed.)
std::map<uint64_t, ReadelfRow> ReadelfRows(const std::string& path, const std::string& bp) {
  const CommandResult result = RunCommand({"readelf", "-wF", path});
  std::map<uint64_t, ReadelfRow> rows;
  std::istringstream lines(result.out);
  std::vector<std::string> columns;
  bool in_function = false;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; words >> word;)
      fields.push_back(word);
    if (fields.size() > 3 && (fields[3] == "CIE" || fields[3] == "FDE")) {
      in_function = fields[3] == "FDE";
    } else if (!fields.empty() && fields[0] == "LOC") {
      columns = fields;
    } else if (in_function && fields.size() == columns.size()) {
      ReadelfRow row{.cfa = fields[1], .bp = "u", .return_address = "u"};
      for (size_t i = 0; i < columns.size(); ++i) {
        if (columns[i] == bp) row.bp = fields[i];
        if (columns[i] == "ra") row.return_address = fields[i];
      }
      rows[std::stoull(fields[0], nullptr, 16)] = row;
    }
  }
  return rows;
}

TEST(UnwindTable, AgreesWithReadelf) {
  const OracleFile file(kLibc);
  const Result<UnwindTable> table = UnwindTable::Build(file.eh_frame(), file.eh_frame_address());
  ASSERT_TRUE(table.ok()) << table.status();
  const std::map<uint64_t, ReadelfRow> rows = ReadelfRows(kLibc, "rbp");
  EXPECT_GT(rows.size(), 10'000u);
  for (const auto& [address, row] : rows) {
    if (row.cfa == "exp" || row.return_address != "c-8") continue;
    const ff_unwind_rule rule = table->Find(address);
    const std::string cfa =
        (rule.cfa == FF_CFA_BP ? "rbp+" : "rsp+") + std::to_string(rule.cfa_offset);
    const std::string bp = rule.bp == FF_BP_AT_CFA ? "c" + std::to_string(rule.bp_offset) : "u";
    ASSERT_EQ(cfa + " " + bp, row.cfa + " " + row.bp) << std::hex << address;
  }
}

TEST(UnwindTable, AgreesWithReadelfOnArm64) {
  const OracleFile file(FF_ARM64_LIBC);
  const Result<UnwindTable> table = UnwindTable::Build(file.eh_frame(), file.eh_frame_address());
  ASSERT_TRUE(table.ok()) << table.status();
  const std::map<uint64_t, ReadelfRow> rows = ReadelfRows(FF_ARM64_LIBC, "x29");
  EXPECT_GT(rows.size(), 10'000u);
  size_t unknown = 0;  // by another register (setcontext), or a frame over 32 KiB
  const auto at_cfa = [](int offset) { return "c" + std::to_string(offset); };
  for (const auto& [address, row] : rows) {
    const ff_unwind_rule rule = table->Find(address);
    if (rule.cfa == FF_CFA_END || rule.cfa == FF_CFA_SIGNAL) continue;
    unknown += rule.cfa == FF_CFA_UNKNOWN;
    if (rule.cfa == FF_CFA_UNKNOWN) continue;
    const std::string cfa =
        (rule.cfa == FF_CFA_BP ? "x29+" : "sp+") + std::to_string(rule.cfa_offset);
    std::string saved = "u u";
    if (rule.bp == FF_BP_AT_CFA) saved = at_cfa(rule.bp_offset) + " " + at_cfa(rule.bp_offset + 8);
    if (rule.bp == FF_BP_SAME_LR_AT_CFA) saved = "u " + at_cfa(rule.bp_offset);
    if (rule.bp == FF_BP_UNKNOWN) saved = row.bp + " " + at_cfa(rule.bp_offset);
    ASSERT_EQ(cfa + " " + saved, row.cfa + " " + row.bp + " " + row.return_address)
        << std::hex << address;
  }
  EXPECT_LT(unknown, rows.size() / 100);
}

}  // namespace
}  // namespace flamefleet::agent
