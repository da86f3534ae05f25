// SPDX-License-Identifier: Apache-2.0
// FileLines: what the source of one mapped file's code is, address by address: asked for once,
// kept.
//
// Thread: one owner. Bounds: kMaxKnownAddresses and kMaxLineBytes, beyond which all are forgotten,
// and the owner's budget; memory is what Bytes() says. A file that gives nothing but trouble, or
// kMaxStrikes times in a row kills the parser or gives nothing in time, is not asked again. Errors:
// none; the counts say what became of each address.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/parse/parser_process.h"
#include "agent/symbol/source_lines.h"
#include "agent/symbol/symbol_name.h"
#include "base/hash.h"

namespace flamefleet::agent {

constexpr size_t kMaxKnownAddresses = 1 << 16;
constexpr size_t kMaxLineBytes = 12 << 20;  // 40,000 addresses with five frames each
constexpr int kMaxStrikes = 3;

// What became of the addresses that were asked for.
enum class LineOutcome : size_t {
  kFound,
  kNone,      // DWARF says nothing of it
  kLate,      // there was no time in this window; asked again in the next
  kTooSlow,   // the file took too long too often
  kTooLarge,  // its DWARF is over a bound, or takes too much memory, here or in the parser
  kSplit,     // its DWARF is in .dwo files
  kDamaged,   // or of a form that is not read
  kDied,      // the parser died of the file
};
constexpr size_t kLineOutcomes = 8;
using LineCounts = std::array<uint64_t, kLineOutcomes>;

class FileLines {
 public:
  struct Frame {
    const SymbolName* function = nullptr;  // null: unknown
    std::string_view file;                 // "": unknown
    uint32_t line = 0;                     // 0: unknown
  };

  // The next Resolve asks for the address, as the file counts it, unless it is known.
  void Want(uint64_t address);
  bool has_wanted() const { return !wanted_.empty(); }
  // Asks the parser about what is wanted. `files` as AnswerLines has them.
  void Resolve(ParserProcess* parser, std::span<const int> files, std::chrono::nanoseconds budget,
               NameBudget* names, LineCounts* counts);
  // What is wanted goes out without lines this time.
  void GiveUpWanted(LineCounts* counts);

  // The innermost of inlined functions first; empty: nothing is known. Valid until the next Want.
  std::span<const Frame> Find(uint64_t address) const;
  size_t Bytes() const;

 private:
  struct Slice {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  // Whether anything came of it.
  bool Ask(ParserProcess* parser, std::span<const int> files, std::span<const uint64_t> addresses,
           std::chrono::nanoseconds budget, NameBudget* names, LineCounts* counts);
  bool Take(const SourceLines& lines, std::span<const uint64_t> addresses, NameBudget* names,
            LineCounts* counts);
  void Fail(LineOutcome outcome) { failure_ = outcome; }
  const SymbolName* FunctionOf(const std::string& text);

  std::vector<uint64_t> wanted_;
  std::unordered_map<uint64_t, Slice, SeededHash> known_;
  std::vector<Frame> frames_;
  std::map<std::string, SymbolName> functions_;
  std::set<std::string> file_names_;
  size_t text_bytes_ = 0;
  int strikes_ = 0;
  LineOutcome strike_ = LineOutcome::kTooSlow;  // what the last one was
  LineOutcome failure_ = LineOutcome::kFound;   // kFound: none
};

}  // namespace flamefleet::agent
