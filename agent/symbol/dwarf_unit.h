// SPDX-License-Identifier: Apache-2.0
// DwarfFile: units, abbreviations and entries of the DWARF (4 and 5, 64 and 32 bit) of one file.
//
// Runs in the parsing child. Thread: one owner. Bounds: the constants below; what takes long asks
// its WorkBudget. Errors: kInvalidArgument for what contradicts itself or is of another version,
// kResourceExhausted over a bound.
// Source: DWARF 4 and 5, section 7; GNU extensions: GCC's wiki, "DwarfSeparateTypeInfo"
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/symbol/dwarf_cursor.h"
#include "agent/symbol/dwarf_sections.h"
#include "base/clock.h"

namespace flamefleet::agent {

constexpr size_t kMaxDwarfUnits = 1 << 17;  // Chromium has 30 thousand
constexpr size_t kMaxAbbreviations = 1 << 16;
constexpr size_t kMaxAbbreviationBytes = 4 << 20;
constexpr size_t kMaxKeptAbbreviations = 8;  // tables
constexpr size_t kMaxRangesOfEntry = 1 << 16;

// How long an answer may be worked on.
class WorkBudget {
 public:
  explicit WorkBudget(int64_t nanos) : end_ns_(SystemClock().MonotonicNanos() + nanos) {}

  // Counts one step, of about 10 to 100 ns; false once time is over.
  bool Step() { return (++steps_ & 1023) == 0 ? BigStep() : !is_over_; }
  // One that may take longer.
  bool BigStep() {
    if (SystemClock().MonotonicNanos() > end_ns_) is_over_ = true;
    return !is_over_;
  }
  bool is_over() const { return is_over_; }

 private:
  const int64_t end_ns_;
  uint32_t steps_ = 0;
  bool is_over_ = false;
};

// An attribute as it stands in the entry: a number (address, offset, index, constant) or a text.
struct DwarfValue {
  uint16_t form = 0;  // 0: the entry has no such attribute
  uint64_t number = 0;
  std::string_view text;

  explicit operator bool() const { return form != 0; }
};

struct DwarfUnit {
  uint64_t offset = 0;  // of its header in .debug_info
  uint64_t end = 0;
  uint64_t first_entry = 0;  // offset of the root
  uint64_t abbreviations = 0;
  uint16_t version = 0;
  uint8_t offset_size = 4;
  uint8_t address_size = 8;
  uint8_t type = 0;  // DW_UT_*

  // Of the root entry, by ReadRoot.
  bool is_split = false;  // what it describes is in another file
  uint64_t base_address = 0;
  uint64_t str_offsets_base = 0;
  uint64_t addr_base = 0;
  uint64_t rnglists_base = 0;
  std::optional<uint64_t> line_program;
  bool has_root = false;  // it was read
  std::string folder;     // DW_AT_comp_dir; set by who needs it
};

// One debugging information entry, with the attributes of interest.
struct DwarfEntry {
  uint64_t offset = 0;  // in .debug_info
  uint16_t tag = 0;     // 0: the end of a list of children
  bool has_children = false;
  DwarfValue sibling, name, linkage_name, low_pc, high_pc, ranges, origin, specification;
  DwarfValue call_file, call_line;
  // Of the root only.
  DwarfValue line_program, folder, str_offsets_base, addr_base, rnglists_base, split_name;
};

class DwarfAbbreviations {
 public:
  struct Attribute {
    uint16_t name = 0;
    uint16_t form = 0;
    int64_t constant = 0;  // of DW_FORM_implicit_const
  };
  struct Abbreviation {
    uint16_t tag = 0;  // 0: there is none of this code
    bool has_children = false;
    uint32_t first = 0;
    uint32_t count = 0;
  };

  // Up to the end of the table, or to the code `last` if that comes first.
  static Result<DwarfAbbreviations> Read(DwarfSections* sections, uint64_t offset, uint64_t last);
  const Abbreviation* Find(uint64_t code) const {
    return code < by_code_.size() && by_code_[code].tag != 0 ? &by_code_[code] : nullptr;
  }
  std::span<const Attribute> Attributes(const Abbreviation& abbreviation) const {
    return std::span(attributes_).subspan(abbreviation.first, abbreviation.count);
  }

 private:
  bool Parse(DwarfCursor* cursor, uint64_t last);

  std::vector<Abbreviation> by_code_;
  std::vector<Attribute> attributes_;
};

class DwarfFile {
 public:
  DwarfFile(DwarfSections sections, WorkBudget* budget)
      : sections_(std::move(sections)), budget_(budget) {}

  // Fills units(); those before what is damaged stay.
  Status ReadUnits();
  std::vector<DwarfUnit>& units() { return units_; }
  // The unit that holds the entry at `offset`; null when none does.
  DwarfUnit* UnitOf(uint64_t offset);

  // Reads the root and what it says of the unit.
  Result<DwarfEntry> ReadRoot(DwarfUnit* unit);
  Result<const DwarfAbbreviations*> AbbreviationsOf(const DwarfUnit& unit);
  // One entry by itself.
  Result<DwarfEntry> ReadEntryAt(DwarfUnit* unit, uint64_t offset);

  // The parts of the program that the entry covers: from, and to (exclusive).
  using RangeSink = std::function<void(uint64_t, uint64_t)>;
  Status ForEachRange(const DwarfUnit& unit, const DwarfEntry& entry, const RangeSink& sink);

  std::string TextOf(const DwarfUnit& unit, const DwarfValue& value, DwarfFile* alternate);
  DwarfSections& sections() { return sections_; }
  WorkBudget& budget() { return *budget_; }

 private:
  std::optional<uint64_t> AddressOf(const DwarfUnit& unit, const DwarfValue& value);
  std::optional<uint64_t> Number(DwarfSection section, uint64_t offset, size_t size);
  Status ReadOldRanges(const DwarfUnit& unit, uint64_t at, const RangeSink& sink);
  Status ReadRangeList(const DwarfUnit& unit, const DwarfValue& value, const RangeSink& sink);

  DwarfSections sections_;
  WorkBudget* const budget_;
  std::vector<DwarfUnit> units_;
  std::map<uint64_t, DwarfAbbreviations> abbreviations_;  // by offset
};

// Reads the value of one attribute of entries of the unit; false for a form that is unknown.
bool ReadDwarfValue(const DwarfUnit& unit, const DwarfAbbreviations::Attribute& attribute,
                    DwarfCursor* cursor, DwarfValue* value);

// Reads the entry at the cursor, which moves behind it; of one that is neither a function nor a
// unit only tag, children and sibling, unless `whole`. `base` is the offset in .debug_info of the
// bytes that the cursor reads. False when it is damaged.
bool ReadDwarfEntry(const DwarfUnit& unit, const DwarfAbbreviations& abbreviations, uint64_t base,
                    bool whole, DwarfCursor* cursor, DwarfEntry* entry);

// The offset in .debug_info that a reference of `unit` means; `in_alternate`: of the other file.
struct DwarfReference {
  uint64_t offset = 0;
  bool in_alternate = false;
};
std::optional<DwarfReference> ReferenceOf(const DwarfUnit& unit, const DwarfValue& value);

}  // namespace flamefleet::agent
