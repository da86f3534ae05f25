// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/unwind_table.h"

#include <dwarf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <random>
#include <string>

#include "tests/agent/stack/oracle_file.h"

static bool operator==(const ff_unwind_rule& a, const ff_unwind_rule& b) {
  return a.cfa == b.cfa && a.cfa_offset == b.cfa_offset && a.bp == b.bp &&
         a.bp_offset == b.bp_offset;
}

static std::ostream& operator<<(std::ostream& out, const ff_unwind_rule& rule) {
  return out << "cfa " << int{rule.cfa} << " " << rule.cfa_offset << " bp " << int{rule.bp} << " "
             << rule.bp_offset;
}

namespace flamefleet::agent {
namespace {

using flamefleet::testing::OracleFile;

// What libdw says, in our form.
class Oracle {
 public:
  explicit Oracle(Elf* elf) : cfi_(dwarf_getcfi_elf(elf)) {
    GElf_Ehdr header;
    is_arm64_ = gelf_getehdr(elf, &header)->e_machine == EM_AARCH64;
    bp_ = is_arm64_ ? 29 : 6;
    sp_ = is_arm64_ ? 31 : 7;
    return_address_ = is_arm64_ ? 30 : 16;
  }
  ~Oracle() { dwarf_cfi_end(cfi_); }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;

  ff_unwind_rule Find(uint64_t address) const {
    Dwarf_Frame* frame = nullptr;
    if (cfi_ == nullptr || dwarf_cfi_addrframe(cfi_, address, &frame) != 0) return {};
    const std::unique_ptr<Dwarf_Frame, decltype(&std::free)> owner(frame, &std::free);
    return ToRule(frame);
  }

 private:
  static bool Is(const Dwarf_Op& op, unsigned atom) { return op.atom == atom; }

  // "register + offset": in either of the two forms that libdw gives.
  static bool IsRegister(const Dwarf_Op& op, unsigned number, int64_t* offset) {
    if (Is(op, DW_OP_bregx) && op.number == number)
      *offset = static_cast<int64_t>(op.number2);
    else if (Is(op, DW_OP_breg0 + number))
      *offset = static_cast<int64_t>(op.number);
    else
      return false;
    return true;
  }

  static bool IsPlt(const Dwarf_Op* ops, size_t count) {
    constexpr std::array<unsigned, 9> kAtoms = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15,
                                                DW_OP_and,   DW_OP_lit0,   DW_OP_ge,
                                                DW_OP_lit3,  DW_OP_shl,    DW_OP_plus};
    constexpr size_t kLimit = 4;  // the one that varies: lit10, lit11
    if (count != kAtoms.size()) return false;
    for (size_t i = 0; i < count; ++i) {
      if (i != kLimit && !Is(ops[i], kAtoms[i])) return false;
    }
    return true;
  }

  // "call_frame_cfa", or that "plus_uconst offset".
  static bool IsAtCfa(const Dwarf_Op* ops, size_t count, int64_t* offset) {
    if (count == 0 || count > 2 || !Is(ops[0], DW_OP_call_frame_cfa)) return false;
    if (count == 2 && !Is(ops[1], DW_OP_plus_uconst)) return false;
    *offset = count == 2 ? static_cast<int64_t>(ops[1].number) : 0;
    return true;
  }

  ff_unwind_rule ToRule(Dwarf_Frame* frame) const {
    std::array<Dwarf_Op, 3> memory;
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    int64_t offset = 0;
    if (dwarf_frame_register(frame, static_cast<int>(return_address_), memory.data(), &ops,
                             &count) != 0)
      return {};
    // rawmemchr of arm64 keeps its own in another register.
    if (dwarf_frame_info(frame, nullptr, nullptr, nullptr) != static_cast<int>(return_address_))
      return {};
    const bool is_lost = count == 0 && ops == memory.data();
    if (is_lost) return {.cfa = FF_CFA_END};
    ff_unwind_rule rule{};
    if (is_arm64_) {
      const bool is_stored = IsAtCfa(ops, count, &offset);
      if (count != 0 && !is_stored) return {};
      const bool known = SetCfa(frame, &rule) && SetBp(frame, &rule);
      if (!known || (!is_stored && rule.bp != FF_BP_SAME) || offset < INT16_MIN) return {};
      if (is_stored && !(rule.bp == FF_BP_AT_CFA && rule.bp_offset == offset - 8)) {
        rule.bp = rule.bp == FF_BP_SAME ? FF_BP_SAME_LR_AT_CFA : FF_BP_UNKNOWN;
        rule.bp_offset = static_cast<int16_t>(offset);
      }
      return rule;
    }
    // The address of a saved register: call_frame_cfa, then [plus_uconst offset] or an expression.
    if (count == 2 && Is(ops[0], DW_OP_call_frame_cfa) && IsRegister(ops[1], sp_, &offset) &&
        offset == FF_SIGNAL_IP)
      return {.cfa = FF_CFA_SIGNAL};
    if (!IsAtCfa(ops, count, &offset) || offset != -8) return {};
    return SetCfa(frame, &rule) && SetBp(frame, &rule) ? rule : ff_unwind_rule{};
  }

  bool SetCfa(Dwarf_Frame* frame, ff_unwind_rule* rule) const {
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    int64_t offset = 0;
    if (dwarf_frame_cfa(frame, &ops, &count) != 0) return false;
    if (count == 1 && IsRegister(ops[0], sp_, &offset)) {
      rule->cfa = FF_CFA_SP;
    } else if (count == 1 && IsRegister(ops[0], bp_, &offset)) {
      rule->cfa = FF_CFA_BP;
    } else if (count == 2 && IsRegister(ops[0], bp_, &offset) && Is(ops[1], DW_OP_deref)) {
      rule->cfa = FF_CFA_DEREF_BP;
    } else if (IsPlt(ops, count)) {
      rule->cfa = FF_CFA_PLT;
      offset = int64_t{ops[4].atom} - DW_OP_lit0;
    } else {
      return false;
    }
    rule->cfa_offset = static_cast<int32_t>(offset);
    return true;
  }

  bool SetBp(Dwarf_Frame* frame, ff_unwind_rule* rule) const {
    std::array<Dwarf_Op, 3> memory;
    Dwarf_Op* ops = nullptr;
    size_t count = 0;
    int64_t offset = 0;
    if (dwarf_frame_register(frame, static_cast<int>(bp_), memory.data(), &ops, &count) != 0)
      return false;
    const bool in_memory = count >= 1 && Is(ops[0], DW_OP_call_frame_cfa);
    if (count == 0) {
      rule->bp = ops == nullptr ? FF_BP_SAME : FF_BP_UNKNOWN;
    } else if (IsAtCfa(ops, count, &offset)) {
      rule->bp = FF_BP_AT_CFA;
    } else if (in_memory && count == 2 && IsRegister(ops[1], bp_, &offset)) {
      rule->bp = FF_BP_AT_BP;
    } else {
      rule->bp = FF_BP_UNKNOWN;
    }
    rule->bp_offset = static_cast<int16_t>(offset);
    return true;
  }

  Dwarf_CFI* const cfi_;
  bool is_arm64_ = false;
  unsigned bp_ = 0;
  unsigned sp_ = 0;
  unsigned return_address_ = 0;
};

bool Exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

class UnwindTableOfSystemFile : public ::testing::TestWithParam<const char*> {};

TEST_P(UnwindTableOfSystemFile, AgreesWithLibdw) {
  if (!Exists(GetParam())) GTEST_SKIP() << "not installed here";
  const OracleFile file(GetParam());
  const Result<UnwindTable> table = UnwindTable::Build(file.eh_frame(), file.eh_frame_address());
  ASSERT_TRUE(table.ok()) << table.status();
  const Oracle oracle(file.elf());
  constexpr int kAddresses = 20'000;
  std::mt19937_64 random(1);
  std::uniform_int_distribution<uint64_t> any(file.code_start(), file.code_end() - 1);
  int disagreements = 0;
  int known = 0;
  for (int i = 0; i < kAddresses; ++i) {
    const uint64_t address = any(random);
    const ff_unwind_rule ours = table->Find(address);
    const ff_unwind_rule theirs = oracle.Find(address);
    known += ours.cfa != FF_CFA_UNKNOWN;
    if (ours == theirs) continue;
    if (++disagreements < 10)
      ADD_FAILURE() << std::hex << address << ": " << ours << " but libdw " << theirs;
  }
  EXPECT_EQ(disagreements, 0);
  RecordProperty("known", known);
  RecordProperty("rows", static_cast<int>(table->row_count()));
  RecordProperty("rules", static_cast<int>(table->rule_count()));
  RecordProperty("bytes", static_cast<int>(table->words().size_bytes()));
}

// The first ones come with this project's own build packages.
INSTANTIATE_TEST_SUITE_P(
    All, UnwindTableOfSystemFile,
    ::testing::Values(FF_ARM64_LIBC, FF_ARM64_LIBSTDCXX, "/usr/lib/x86_64-linux-gnu/libc.so.6",
                      "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/bin/python3.11",
                      "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus", "/usr/bin/cmake",
                      "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
                      "/usr/lib/x86_64-linux-gnu/libclang-cpp.so.14",
                      "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
                      "/usr/lib/x86_64-linux-gnu/libgrpc.so.29",
                      "/usr/lib/x86_64-linux-gnu/libprotobuf.so.32", "/usr/bin/node",
                      "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"));

}  // namespace
}  // namespace flamefleet::agent
