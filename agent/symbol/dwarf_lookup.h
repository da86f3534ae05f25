// SPDX-License-Identifier: Apache-2.0
// DwarfLookup: from addresses to functions with all that is inlined there, files and lines.
//
// Only the units that hold an address are read: each is walked once for all of its addresses.
//
// Runs in the parsing child. Thread: one owner. Bounds: those of DwarfFile, kMaxInlineDepth, and
// the reader's budget: what it has no time for stays kLate. Errors: none; a damaged unit costs the
// lines of its addresses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/symbol/dwarf_line.h"
#include "agent/symbol/dwarf_scopes.h"
#include "agent/symbol/dwarf_unit.h"
#include "agent/symbol/source_lines.h"

namespace flamefleet::agent {

class DwarfLookup {
 public:
  // `alternate`: what dwz moved out of the file; may be null. Both outlive this.
  DwarfLookup(DwarfFile* reader, DwarfFile* alternate) : reader_(reader), alternate_(alternate) {}

  // `addresses` in their order, each once.
  SourceLines Find(std::span<const uint64_t> addresses);

 private:
  // A function that holds an address, or one that is inlined into the one before it.
  struct Link {
    DwarfReference function;
    uint64_t call_file = 0;
    uint64_t call_line = 0;
    uint32_t depth = 0;  // in the tree of entries
  };
  struct Chain {
    uint64_t owner = 0;  // the entry of its first link
    std::vector<Link> links;
    DwarfPlace place;
    bool has_place = false;
  };

  void Note(LineProblem problem);
  void FindInUnit(DwarfUnit* unit);
  Status ReadUnit(DwarfUnit* unit, const DwarfEntry& root);
  // `deep`: looks for functions everywhere, not only where compilers put them.
  Status Walk(const DwarfUnit& unit, bool deep);
  bool Claim(const DwarfUnit& unit, const DwarfEntry& entry, uint32_t depth);
  bool Append(const DwarfUnit& unit, const DwarfEntry& entry, uint32_t depth, uint64_t owner);
  template <typename Visit>
  void ForEachChain(const DwarfUnit& unit, const DwarfEntry& entry, const Visit& visit);
  void Commit(const DwarfLineTable* lines);
  uint32_t NameOf(const DwarfReference& function);
  std::string ReadName(DwarfReference at);
  // The scopes of the entry, as a prefix of its name.
  std::string PrefixOf(const DwarfReference& at);
  uint32_t Intern(const std::string& text);

  DwarfFile* const reader_;
  DwarfFile* const alternate_;
  std::span<const uint64_t> addresses_;
  SourceLines result_;
  std::unordered_map<std::string, uint32_t> texts_;
  std::map<std::pair<bool, uint64_t>, uint32_t> names_;  // by reference

  std::unique_ptr<DwarfScopes> scopes_;  // of the unit that was asked for last
  bool scopes_are_alternate_ = false;

  // Of the unit at hand: its addresses, their numbers among all, what was found.
  std::vector<uint64_t> unit_addresses_;
  std::vector<size_t> numbers_;
  std::vector<Chain> chains_;
};

}  // namespace flamefleet::agent
