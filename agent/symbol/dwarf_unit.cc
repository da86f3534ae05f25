// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/dwarf_unit.h"

#include <dwarf.h>

#include <algorithm>
#include <utility>

namespace flamefleet::agent {
namespace {

constexpr size_t kMaxHeaderBytes = 48;
constexpr size_t kMaxRootBytes = 4096;
constexpr size_t kListChunkBytes = 4096;  // of ranges; lists are mostly much shorter

// The unit whose header begins at `offset`. kNotFound at the end.
Result<DwarfUnit> ReadHeader(DwarfSections* sections, uint64_t offset) {
  const std::string_view bytes = sections->Peek(DwarfSection::kInfo, offset, kMaxHeaderBytes);
  if (bytes.empty()) return NotFoundError("read DWARF: no further unit");
  DwarfCursor cursor(bytes);
  DwarfUnit unit{.offset = offset};
  uint64_t length = cursor.Fixed(4);
  if (length == UINT32_MAX) {
    unit.offset_size = 8;
    length = cursor.Fixed(8);
  }
  const uint64_t rest = sections->Size(DwarfSection::kInfo) - offset - cursor.at();
  if (!cursor.ok() || length > rest)
    return InvalidArgumentError("read DWARF: a unit beyond the end of its section");
  unit.end = offset + cursor.at() + length;
  unit.version = static_cast<uint16_t>(cursor.Fixed(2));
  if (unit.version >= 5) {
    unit.type = cursor.Byte();
    unit.address_size = cursor.Byte();
    unit.abbreviations = cursor.Fixed(unit.offset_size);
    if (unit.type == DW_UT_skeleton || unit.type == DW_UT_split_compile) cursor.Skip(8);
    if (unit.type == DW_UT_type || unit.type == DW_UT_split_type) cursor.Skip(8 + unit.offset_size);
  } else {
    unit.type = DW_UT_compile;
    unit.abbreviations = cursor.Fixed(unit.offset_size);
    unit.address_size = cursor.Byte();
  }
  unit.first_entry = offset + cursor.at();
  if (!cursor.ok() || unit.first_entry > unit.end || unit.version < 2 || unit.version > 5 ||
      (unit.address_size != 4 && unit.address_size != 8))
    return InvalidArgumentError("read DWARF: a unit of an unknown form");
  return unit;
}

}  // namespace

bool DwarfAbbreviations::Parse(DwarfCursor* cursor, uint64_t last) {
  by_code_.clear();
  attributes_.clear();
  while (const uint64_t code = cursor->Unsigned()) {
    Abbreviation abbreviation{.tag = static_cast<uint16_t>(cursor->Unsigned()),
                              .has_children = cursor->Byte() != 0,
                              .first = static_cast<uint32_t>(attributes_.size())};
    for (;;) {
      Attribute attribute{.name = static_cast<uint16_t>(cursor->Unsigned()),
                          .form = static_cast<uint16_t>(cursor->Unsigned())};
      if (attribute.form == DW_FORM_implicit_const) attribute.constant = cursor->Signed();
      if (attribute.name == 0 && attribute.form == 0) break;
      attributes_.push_back(attribute);
    }
    abbreviation.count = static_cast<uint32_t>(attributes_.size()) - abbreviation.first;
    if (!cursor->ok() || code >= kMaxAbbreviations) return false;
    if (by_code_.size() <= code) by_code_.resize(code + 1);
    by_code_[code] = abbreviation;
    if (code == last) break;
  }
  return cursor->ok();
}

Result<DwarfAbbreviations> DwarfAbbreviations::Read(DwarfSections* sections, uint64_t offset,
                                                    uint64_t last) {
  DwarfAbbreviations table;
  // Nothing says how long it is.
  for (size_t wanted = 16 << 10; wanted <= kMaxAbbreviationBytes; wanted *= 4) {
    const std::string_view bytes = sections->Peek(DwarfSection::kAbbrev, offset, wanted);
    DwarfCursor cursor(bytes);
    if (table.Parse(&cursor, last)) return table;
    if (bytes.size() < wanted) break;
  }
  return InvalidArgumentError("read DWARF: damaged abbreviations");
}

Status DwarfFile::ReadUnits() {
  for (uint64_t at = 0; budget_->Step();) {
    Result<DwarfUnit> unit = ReadHeader(&sections_, at);
    if (!unit.ok())
      return unit.status().code() == StatusCode::kNotFound ? OkStatus() : unit.status();
    if (units_.size() == kMaxDwarfUnits)
      return ResourceExhaustedError("read DWARF: too many units");
    at = unit->end;
    units_.push_back(*std::move(unit));
  }
  return OkStatus();
}

DwarfUnit* DwarfFile::UnitOf(uint64_t offset) {
  const auto next = std::ranges::upper_bound(units_, offset, {}, &DwarfUnit::offset);
  if (next == units_.begin()) return nullptr;
  DwarfUnit& unit = *std::prev(next);
  return offset >= unit.first_entry && offset < unit.end ? &unit : nullptr;
}

Result<const DwarfAbbreviations*> DwarfFile::AbbreviationsOf(const DwarfUnit& unit) {
  const auto known = abbreviations_.find(unit.abbreviations);
  if (known != abbreviations_.end()) return &known->second;
  FF_ASSIGN_OR_RETURN(DwarfAbbreviations table,
                      DwarfAbbreviations::Read(&sections_, unit.abbreviations, UINT64_MAX));
  if (abbreviations_.size() == kMaxKeptAbbreviations) abbreviations_.clear();
  return &abbreviations_.emplace(unit.abbreviations, std::move(table)).first->second;
}

Result<DwarfEntry> DwarfFile::ReadRoot(DwarfUnit* unit) {
  const std::string_view bytes = sections_.Peek(
      DwarfSection::kInfo, unit->first_entry,
      static_cast<size_t>(std::min<uint64_t>(kMaxRootBytes, unit->end - unit->first_entry)));
  const uint64_t code = DwarfCursor(bytes).Unsigned();
  if (code == 0) return InvalidArgumentError("read DWARF: a unit without a root");
  // Mostly the first of a long table.
  FF_ASSIGN_OR_RETURN(const DwarfAbbreviations abbreviations,
                      DwarfAbbreviations::Read(&sections_, unit->abbreviations, code));
  DwarfCursor cursor(bytes);
  DwarfEntry root;
  if (!ReadDwarfEntry(*unit, abbreviations, unit->first_entry, /*whole=*/true, &cursor, &root))
    return InvalidArgumentError("read DWARF: a damaged unit");
  unit->has_root = true;
  unit->is_split = static_cast<bool>(root.split_name);
  // Without the attribute they begin behind the header of their table.
  unit->str_offsets_base = root.str_offsets_base ? root.str_offsets_base.number : 8;
  unit->addr_base = root.addr_base ? root.addr_base.number : unit->version >= 5 ? 8 : 0;
  unit->rnglists_base = root.rnglists_base ? root.rnglists_base.number : 12;
  if (root.line_program) unit->line_program = root.line_program.number;
  if (root.low_pc) unit->base_address = AddressOf(*unit, root.low_pc).value_or(0);
  return root;
}

Result<DwarfEntry> DwarfFile::ReadEntryAt(DwarfUnit* unit, uint64_t offset) {
  FF_ASSIGN_OR_RETURN(const DwarfAbbreviations* const abbreviations, AbbreviationsOf(*unit));
  for (size_t wanted = 512; wanted <= kMaxAbbreviationBytes; wanted *= 16) {
    const std::string_view bytes = sections_.Peek(DwarfSection::kInfo, offset, wanted);
    DwarfCursor cursor(bytes);
    DwarfEntry entry;
    if (ReadDwarfEntry(*unit, *abbreviations, offset, /*whole=*/true, &cursor, &entry))
      return entry;
    if (bytes.size() < wanted) break;
  }
  return InvalidArgumentError("read DWARF: a damaged entry");
}

std::optional<uint64_t> DwarfFile::Number(DwarfSection section, uint64_t offset, size_t size) {
  DwarfCursor cursor(sections_.Peek(section, offset, size));
  const uint64_t number = cursor.Fixed(size);
  if (!cursor.ok()) return std::nullopt;
  return number;
}

std::optional<uint64_t> DwarfFile::AddressOf(const DwarfUnit& unit, const DwarfValue& value) {
  switch (value.form) {
    case DW_FORM_addr:
      return value.number;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
      if (value.number > UINT32_MAX) return std::nullopt;
      return Number(DwarfSection::kAddr, unit.addr_base + value.number * unit.address_size,
                    unit.address_size);
    default:
      return std::nullopt;
  }
}

std::string DwarfFile::TextOf(const DwarfUnit& unit, const DwarfValue& value,
                              DwarfFile* alternate) {
  switch (value.form) {
    case DW_FORM_string:
      return std::string(value.text.substr(0, kMaxDwarfTextBytes));
    case DW_FORM_strp:
      return sections_.Text(DwarfSection::kStr, value.number);
    case DW_FORM_line_strp:
      return sections_.Text(DwarfSection::kLineStr, value.number);
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_strp_sup:
      return alternate == nullptr ? std::string()
                                  : alternate->sections_.Text(DwarfSection::kStr, value.number);
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4: {
      if (value.number > UINT32_MAX) return {};
      const std::optional<uint64_t> offset =
          Number(DwarfSection::kStrOffsets, unit.str_offsets_base + value.number * unit.offset_size,
                 unit.offset_size);
      return offset ? sections_.Text(DwarfSection::kStr, *offset) : std::string();
    }
    default:
      return {};
  }
}

Status DwarfFile::ForEachRange(const DwarfUnit& unit, const DwarfEntry& entry,
                               const RangeSink& sink) {
  if (entry.ranges) {
    return unit.version >= 5 ? ReadRangeList(unit, entry.ranges, sink)
                             : ReadOldRanges(unit, entry.ranges.number, sink);
  }
  const std::optional<uint64_t> low = AddressOf(unit, entry.low_pc);
  if (!low || !entry.high_pc) return OkStatus();
  // An address or, by any other form, a length.
  const uint64_t high = AddressOf(unit, entry.high_pc).value_or(*low + entry.high_pc.number);
  if (high > *low) sink(*low, high);
  return OkStatus();
}

Status DwarfFile::ReadOldRanges(const DwarfUnit& unit, uint64_t at, const RangeSink& sink) {
  const size_t pair = size_t{2} * unit.address_size;
  const uint64_t select = unit.address_size == 8 ? UINT64_MAX : UINT32_MAX;
  uint64_t base = unit.base_address;
  for (size_t i = 0; i < kMaxRangesOfEntry && budget_->Step(); ++i, at += pair) {
    DwarfCursor cursor(sections_.Peek(DwarfSection::kRanges, at, pair));
    const uint64_t low = cursor.Fixed(unit.address_size);
    const uint64_t high = cursor.Fixed(unit.address_size);
    if (!cursor.ok()) return InvalidArgumentError("read DWARF: ranges without an end");
    if (low == 0 && high == 0) return OkStatus();
    if (low == select)
      base = high;
    else if (high > low)
      sink(base + low, base + high);
  }
  return ResourceExhaustedError("read DWARF: too many ranges of one entry");
}

Status DwarfFile::ReadRangeList(const DwarfUnit& unit, const DwarfValue& value,
                                const RangeSink& sink) {
  uint64_t at = value.number;
  if (value.form == DW_FORM_rnglistx) {
    if (value.number > UINT32_MAX) return InvalidArgumentError("read DWARF: no such ranges");
    const std::optional<uint64_t> offset =
        Number(DwarfSection::kRnglists, unit.rnglists_base + value.number * unit.offset_size,
               unit.offset_size);
    if (!offset) return InvalidArgumentError("read DWARF: no such ranges");
    at = unit.rnglists_base + *offset;
  }
  uint64_t base = unit.base_address;
  const auto indexed = [&](uint64_t index) {
    return AddressOf(unit, {.form = DW_FORM_addrx, .number = index}).value_or(0);
  };
  for (size_t i = 0; i < kMaxRangesOfEntry && budget_->Step(); ++i) {
    DwarfCursor cursor(sections_.Peek(DwarfSection::kRnglists, at, 32));  // none is longer
    const uint8_t kind = cursor.Byte();
    uint64_t low = 0;
    uint64_t high = 0;
    switch (kind) {
      case DW_RLE_end_of_list:
        return cursor.ok() ? OkStatus() : InvalidArgumentError("read DWARF: ranges without an end");
      case DW_RLE_base_addressx:
        base = indexed(cursor.Unsigned());
        break;
      case DW_RLE_base_address:
        base = cursor.Fixed(unit.address_size);
        break;
      case DW_RLE_startx_endx:
        low = indexed(cursor.Unsigned());
        high = indexed(cursor.Unsigned());
        break;
      case DW_RLE_startx_length:
        low = indexed(cursor.Unsigned());
        high = low + cursor.Unsigned();
        break;
      case DW_RLE_offset_pair:
        low = base + cursor.Unsigned();
        high = base + cursor.Unsigned();
        break;
      case DW_RLE_start_end:
        low = cursor.Fixed(unit.address_size);
        high = cursor.Fixed(unit.address_size);
        break;
      case DW_RLE_start_length:
        low = cursor.Fixed(unit.address_size);
        high = low + cursor.Unsigned();
        break;
      default:
        return InvalidArgumentError("read DWARF: ranges of an unknown form");
    }
    if (!cursor.ok()) return InvalidArgumentError("read DWARF: ranges without an end");
    if (high > low) sink(low, high);
    at += cursor.at();
  }
  return ResourceExhaustedError("read DWARF: too many ranges of one entry");
}

}  // namespace flamefleet::agent
