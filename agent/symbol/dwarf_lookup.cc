// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/dwarf_lookup.h"

#include <dwarf.h>

#include <algorithm>
#include <memory>

namespace flamefleet::agent {
namespace {

constexpr int kMaxReferences = 8;  // from one entry to the next that names it

// Entries in which compilers put functions, or what is inlined into one.
bool HoldsFunctions(uint16_t tag) {
  return tag == DW_TAG_compile_unit || tag == DW_TAG_namespace || tag == DW_TAG_module ||
         tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

LineProblem ProblemOf(const Status& status) {
  return status.code() == StatusCode::kResourceExhausted ? LineProblem::kTooLarge
                                                         : LineProblem::kDamaged;
}

}  // namespace

SourceLines DwarfLookup::Find(std::span<const uint64_t> addresses) {
  addresses_ = addresses;
  result_ = {};
  texts_ = {{"", 0}};
  names_.clear();
  result_.addresses.resize(addresses.size());
  const Status units = reader_->ReadUnits();
  if (!units.ok()) Note(ProblemOf(units));
  if (alternate_ != nullptr) alternate_->ReadUnits().IgnoreError();
  for (DwarfUnit& unit : reader_->units()) {
    if (!reader_->budget().BigStep()) return std::move(result_);
    FindInUnit(&unit);
  }
  if (reader_->budget().is_over()) return std::move(result_);
  for (SourceLines::Address& address : result_.addresses) {
    if (address.state == SourceLines::State::kLate) address.state = SourceLines::State::kNone;
  }
  return std::move(result_);
}

// The first one counts.
void DwarfLookup::Note(LineProblem problem) {
  if (result_.problem == LineProblem::kNone) result_.problem = problem;
}

void DwarfLookup::FindInUnit(DwarfUnit* unit) {
  const Result<DwarfEntry> root = reader_->ReadRoot(unit);
  if (!root.ok()) return Note(ProblemOf(root.status()));
  if (root->tag != DW_TAG_compile_unit && root->tag != DW_TAG_skeleton_unit) return;
  numbers_.clear();
  const Status ranges = reader_->ForEachRange(*unit, *root, [this](uint64_t low, uint64_t high) {
    if (low <= 1) return;  // thrown away by the linker
    const auto first = std::ranges::lower_bound(addresses_, low);
    for (auto it = first; it != addresses_.end() && *it < high; ++it) {
      const auto number = static_cast<size_t>(it - addresses_.begin());
      if (result_.addresses[number].state == SourceLines::State::kLate) numbers_.push_back(number);
    }
  });
  if (!ranges.ok()) Note(ProblemOf(ranges));
  if (numbers_.empty()) return;
  std::ranges::sort(numbers_);
  numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
  const Status read = ReadUnit(unit, *root);
  if (reader_->budget().is_over()) return;
  if (read.ok()) return;
  Note(ProblemOf(read));
  for (const size_t number : numbers_) {
    if (result_.addresses[number].state == SourceLines::State::kLate)
      result_.addresses[number].state = SourceLines::State::kNone;
  }
}

Status DwarfLookup::ReadUnit(DwarfUnit* unit, const DwarfEntry& root) {
  if (unit->is_split) {
    Note(LineProblem::kSplit);
    return InvalidArgumentError("read DWARF: it is in a .dwo file");
  }
  unit->folder = reader_->TextOf(*unit, root.folder, alternate_);
  unit_addresses_.clear();
  for (const size_t number : numbers_)
    unit_addresses_.push_back(addresses_[number]);
  chains_.assign(numbers_.size(), {});
  FF_RETURN_IF_ERROR(Walk(*unit, /*deep=*/false));
  const auto is_nobodys = [](const Chain& chain) { return chain.links.empty(); };
  if (std::ranges::any_of(chains_, is_nobodys)) FF_RETURN_IF_ERROR(Walk(*unit, /*deep=*/true));
  const Result<std::unique_ptr<DwarfLineTable>> lines = DwarfLineTable::Read(reader_, *unit);
  if (lines.ok()) {
    FF_RETURN_IF_ERROR(
        (*lines)->Find(unit_addresses_, [this](size_t number, const DwarfPlace& place) {
          chains_[number].place = place;
          chains_[number].has_place = true;
        }));
  }
  if (!reader_->budget().is_over()) Commit(lines.ok() ? lines->get() : nullptr);
  unit->folder = {};
  return OkStatus();
}

Status DwarfLookup::Walk(const DwarfUnit& unit, bool deep) {
  FF_ASSIGN_OR_RETURN(const DwarfAbbreviations* const abbreviations,
                      reader_->AbbreviationsOf(unit));
  std::string buffer;
  FF_ASSIGN_OR_RETURN(const std::string_view bytes,
                      reader_->sections().Read(DwarfSection::kInfo, unit.first_entry,
                                               unit.end - unit.first_entry, &buffer));
  struct Function {
    uint32_t depth = 0;  // of its children
    uint64_t owner = 0;  // 0: it holds none of the addresses
  };
  std::vector<Function> functions;  // that are open, the innermost last
  DwarfCursor cursor(bytes);
  DwarfEntry entry;
  uint32_t depth = 0;
  while (!cursor.AtEnd() && reader_->budget().Step()) {
    if (!ReadDwarfEntry(unit, *abbreviations, unit.first_entry, /*whole=*/false, &cursor, &entry))
      return InvalidArgumentError("read DWARF: a damaged entry");
    if (entry.tag == 0) {
      if (!functions.empty() && functions.back().depth == depth) functions.pop_back();
      if (depth <= 1) break;
      --depth;
      continue;
    }
    const uint64_t owner = functions.empty() ? 0 : functions.back().owner;
    bool is_wanted = HoldsFunctions(entry.tag);
    if (entry.tag == DW_TAG_subprogram) is_wanted = Claim(unit, entry, depth);
    if (entry.tag == DW_TAG_inlined_subroutine)
      is_wanted = owner != 0 && Append(unit, entry, depth, owner);
    if (!entry.has_children) continue;
    const std::optional<DwarfReference> sibling = ReferenceOf(unit, entry.sibling);
    const bool is_ahead = sibling && sibling->offset > unit.first_entry + cursor.at();
    if (!is_wanted && !deep && is_ahead && sibling->offset < unit.end) {
      cursor.MoveTo(sibling->offset - unit.first_entry);
      continue;
    }
    ++depth;
    if (entry.tag == DW_TAG_subprogram)
      functions.push_back({.depth = depth, .owner = is_wanted ? entry.offset : 0});
  }
  return OkStatus();
}

template <typename Visit>
void DwarfLookup::ForEachChain(const DwarfUnit& unit, const DwarfEntry& entry, const Visit& visit) {
  // Damaged ranges cost what they would have said.
  reader_
      ->ForEachRange(unit, entry,
                     [&](uint64_t low, uint64_t high) {
                       if (low <= 1) return;  // thrown away by the linker
                       const auto first = std::ranges::lower_bound(unit_addresses_, low);
                       for (auto it = first; it != unit_addresses_.end() && *it < high; ++it)
                         visit(&chains_[static_cast<size_t>(it - unit_addresses_.begin())]);
                     })
      .IgnoreError();
}

bool DwarfLookup::Claim(const DwarfUnit& unit, const DwarfEntry& entry, uint32_t depth) {
  bool claimed = false;
  ForEachChain(unit, entry, [&](Chain* chain) {
    // Of functions that the linker folded into one, the first.
    if (chain->owner != 0) return;
    chain->owner = entry.offset;
    chain->links.push_back({.function = {.offset = entry.offset}, .depth = depth});
    claimed = true;
  });
  return claimed;
}

bool DwarfLookup::Append(const DwarfUnit& unit, const DwarfEntry& entry, uint32_t depth,
                         uint64_t owner) {
  bool appended = false;
  ForEachChain(unit, entry, [&](Chain* chain) {
    if (chain->owner != owner || chain->links.size() == kMaxInlineDepth ||
        chain->links.back().depth >= depth)
      return;
    chain->links.push_back(
        {.function = ReferenceOf(unit, entry.origin).value_or(DwarfReference{entry.offset}),
         .call_file = entry.call_file.number,
         .call_line = entry.call_line.number,
         .depth = depth});
    appended = true;
  });
  return appended;
}

void DwarfLookup::Commit(const DwarfLineTable* lines) {
  std::map<uint64_t, uint32_t> files;  // texts, by number
  const auto file_of = [&](uint64_t number) {
    const auto [found, is_new] = files.try_emplace(number, 0);
    if (is_new && lines != nullptr) found->second = Intern(lines->FileName(number));
    return found->second;
  };
  for (size_t i = 0; i < chains_.size(); ++i) {
    if (!reader_->budget().BigStep()) return;  // the others stay late
    const Chain& chain = chains_[i];
    SourceLines::Address& address = result_.addresses[numbers_[i]];
    address.state = SourceLines::State::kNone;
    if (chain.links.empty() && !chain.has_place) continue;
    address = {.state = SourceLines::State::kFound,
               .first = static_cast<uint32_t>(result_.frames.size())};
    SourceLines::Frame frame;
    if (chain.has_place) frame = {.file = file_of(chain.place.file), .line = chain.place.line};
    for (size_t k = chain.links.size(); k-- > 0;) {
      const Link& link = chain.links[k];
      frame.function = NameOf(link.function);
      result_.frames.push_back(frame);
      frame = {.file = file_of(link.call_file), .line = static_cast<uint32_t>(link.call_line)};
    }
    if (chain.links.empty()) result_.frames.push_back(frame);
    address.count = static_cast<uint32_t>(result_.frames.size()) - address.first;
  }
}

uint32_t DwarfLookup::Intern(const std::string& text) {
  const auto [found, is_new] =
      texts_.try_emplace(text, static_cast<uint32_t>(result_.texts.size()));
  if (is_new) result_.texts.push_back(text);
  return found->second;
}

uint32_t DwarfLookup::NameOf(const DwarfReference& function) {
  const auto [found, is_new] = names_.try_emplace({function.in_alternate, function.offset}, 0);
  if (is_new) found->second = Intern(ReadName(function));
  return found->second;
}

std::string DwarfLookup::PrefixOf(const DwarfReference& at) {
  DwarfFile* const reader = at.in_alternate ? alternate_ : reader_;
  DwarfFile* const alternate = at.in_alternate ? nullptr : alternate_;
  DwarfUnit* const unit = reader->UnitOf(at.offset);
  if (!scopes_ || scopes_->unit_offset() != unit->offset ||
      scopes_are_alternate_ != at.in_alternate) {
    scopes_ = std::make_unique<DwarfScopes>(reader, *unit);
    scopes_are_alternate_ = at.in_alternate;
  }
  return scopes_->PrefixOf(reader, alternate, unit, at.offset);
}

// The name for the linker, or else the plain one with its scopes, of the entry or of one that it
// refers to.
std::string DwarfLookup::ReadName(DwarfReference at) {
  std::string name;
  DwarfReference named;  // the last one, which is where it is declared
  for (int i = 0; i < kMaxReferences; ++i) {
    DwarfFile* const reader = at.in_alternate ? alternate_ : reader_;
    DwarfUnit* const unit = reader == nullptr ? nullptr : reader->UnitOf(at.offset);
    if (unit == nullptr) break;
    if (!unit->has_root && !reader->ReadRoot(unit).ok()) break;
    const Result<DwarfEntry> entry = reader->ReadEntryAt(unit, at.offset);
    if (!entry.ok()) break;
    DwarfFile* const alternate = at.in_alternate ? nullptr : alternate_;
    if (entry->linkage_name) return reader->TextOf(*unit, entry->linkage_name, alternate);
    if (entry->name) {
      name = reader->TextOf(*unit, entry->name, alternate);
      named = at;
    }
    const std::optional<DwarfReference> next =
        ReferenceOf(*unit, entry->origin ? entry->origin : entry->specification);
    if (!next) break;
    at = {.offset = next->offset, .in_alternate = at.in_alternate || next->in_alternate};
  }
  return name.empty() ? name : PrefixOf(named) + name;
}

}  // namespace flamefleet::agent
