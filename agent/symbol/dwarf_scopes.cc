// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/dwarf_scopes.h"

#include <dwarf.h>

#include <algorithm>

namespace flamefleet::agent {
namespace {

bool IsClass(uint16_t tag) {
  return tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

}  // namespace

DwarfScopes::DwarfScopes(DwarfFile* reader, const DwarfUnit& unit) : unit_offset_(unit.offset) {
  Read(reader, unit).IgnoreError();
}

Status DwarfScopes::Read(DwarfFile* reader, const DwarfUnit& unit) {
  FF_ASSIGN_OR_RETURN(const DwarfAbbreviations* const abbreviations, reader->AbbreviationsOf(unit));
  std::string buffer;
  FF_ASSIGN_OR_RETURN(const std::string_view bytes,
                      reader->sections().Read(DwarfSection::kInfo, unit.first_entry,
                                              unit.end - unit.first_entry, &buffer));
  std::vector<uint32_t> open;  // one per level: its scope, kNoScope for what is none
  DwarfCursor cursor(bytes);
  DwarfEntry entry;
  const auto innermost = [&open] {
    for (auto it = open.rbegin(); it != open.rend(); ++it) {
      if (*it != kNoScope) return *it;
    }
    return kNoScope;
  };
  while (!cursor.AtEnd() && reader->budget().Step()) {
    if (!ReadDwarfEntry(unit, *abbreviations, unit.first_entry, /*whole=*/false, &cursor, &entry))
      return InvalidArgumentError("read DWARF: a damaged entry");
    if (entry.tag == 0) {
      if (open.empty()) break;
      if (open.back() != kNoScope) scopes_[open.back()].end = unit.first_entry + cursor.at();
      open.pop_back();
      if (open.empty()) break;
      continue;
    }
    if (!entry.has_children) continue;
    const bool is_namespace = entry.tag == DW_TAG_namespace;
    const bool is_function = entry.tag == DW_TAG_subprogram;
    uint32_t scope = kNoScope;
    if (is_namespace || is_function || IsClass(entry.tag)) {
      if (scopes_.size() == kMaxScopes)
        return ResourceExhaustedError("read DWARF: too many scopes");
      scope = static_cast<uint32_t>(scopes_.size());
      scopes_.push_back({.offset = entry.offset,
                         .end = unit.end,
                         .parent = innermost(),
                         .is_namespace = is_namespace});
    }
    const std::optional<DwarfReference> sibling = ReferenceOf(unit, entry.sibling);
    const bool is_ahead =
        sibling && sibling->offset > unit.first_entry + cursor.at() && sibling->offset < unit.end;
    const bool is_unit = open.empty();
    if (is_ahead && !is_unit && !is_namespace && !IsClass(entry.tag)) {
      if (scope != kNoScope) scopes_[scope].end = sibling->offset;
      cursor.MoveTo(sibling->offset - unit.first_entry);
      continue;
    }
    open.push_back(scope);
  }
  return OkStatus();
}

std::string DwarfScopes::PrefixOf(DwarfFile* reader, DwarfFile* alternate, DwarfUnit* unit,
                                  uint64_t offset) const {
  const auto next = std::ranges::lower_bound(scopes_, offset, {}, &Scope::offset);
  if (next == scopes_.begin()) return {};
  auto at = static_cast<uint32_t>(next - scopes_.begin() - 1);
  std::string prefix;
  for (size_t depth = 0; at != kNoScope && depth < kMaxScopeDepth; at = scopes_[at].parent) {
    const Scope& scope = scopes_[at];
    if (scope.end <= offset) continue;
    ++depth;
    const Result<DwarfEntry> entry = reader->ReadEntryAt(unit, scope.offset);
    if (!entry.ok()) break;
    std::string name = reader->TextOf(*unit, entry->name, alternate);
    if (name.empty() && scope.is_namespace) name = "(anonymous namespace)";
    if (!name.empty()) prefix.insert(0, name + "::");
    if (prefix.size() > kMaxDwarfTextBytes) return {};
  }
  return prefix;
}

}  // namespace flamefleet::agent
