// SPDX-License-Identifier: Apache-2.0
// DwarfScopes: the namespaces, classes and functions in which the entries of one unit are, for
// names of functions that have none for the linker: g++ gives none to what nobody else can call.
//
// Runs in the parsing child. Thread: one owner. Bounds: kMaxDwarfPieceBytes of a unit, kMaxScopes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/symbol/dwarf_unit.h"

namespace flamefleet::agent {

constexpr size_t kMaxScopes = 1 << 18;
constexpr size_t kMaxScopeDepth = 64;  // of those in one another

class DwarfScopes {
 public:
  // Reads the whole unit once; what it cannot read has no scopes.
  DwarfScopes(DwarfFile* reader, const DwarfUnit& unit);

  uint64_t unit_offset() const { return unit_offset_; }
  // "outer::inner::" of the entry at `offset`; "" for one that is in none.
  std::string PrefixOf(DwarfFile* reader, DwarfFile* alternate, DwarfUnit* unit,
                       uint64_t offset) const;

 private:
  static constexpr uint32_t kNoScope = UINT32_MAX;
  struct Scope {
    uint64_t offset = 0;
    uint64_t end = 0;
    uint32_t parent = kNoScope;
    bool is_namespace = false;
  };
  Status Read(DwarfFile* reader, const DwarfUnit& unit);

  uint64_t unit_offset_;
  std::vector<Scope> scopes_;  // in the order of offsets
};

}  // namespace flamefleet::agent
