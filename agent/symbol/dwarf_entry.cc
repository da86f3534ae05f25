// SPDX-License-Identifier: Apache-2.0
#include <dwarf.h>

#include "agent/symbol/dwarf_unit.h"

namespace flamefleet::agent {
namespace {

// Where the attribute belongs in the entry; null when it is of no interest.
DwarfValue* SlotOf(uint16_t attribute, DwarfEntry* entry) {
  switch (attribute) {
    case DW_AT_name:
      return &entry->name;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name:
      return &entry->linkage_name;
    case DW_AT_low_pc:
      return &entry->low_pc;
    case DW_AT_high_pc:
      return &entry->high_pc;
    case DW_AT_ranges:
      return &entry->ranges;
    case DW_AT_abstract_origin:
      return &entry->origin;
    case DW_AT_specification:
      return &entry->specification;
    case DW_AT_call_file:
      return &entry->call_file;
    case DW_AT_call_line:
      return &entry->call_line;
    case DW_AT_stmt_list:
      return &entry->line_program;
    case DW_AT_comp_dir:
      return &entry->folder;
    case DW_AT_str_offsets_base:
      return &entry->str_offsets_base;
    case DW_AT_addr_base:
    case DW_AT_GNU_addr_base:
      return &entry->addr_base;
    case DW_AT_rnglists_base:
      return &entry->rnglists_base;
    case DW_AT_dwo_name:
    case DW_AT_GNU_dwo_name:
      return &entry->split_name;
    default:
      return nullptr;
  }
}

bool IsOfInterest(uint16_t tag) {
  return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
         tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit || tag == DW_TAG_skeleton_unit;
}

}  // namespace

bool ReadDwarfValue(const DwarfUnit& unit, const DwarfAbbreviations::Attribute& attribute,
                    DwarfCursor* cursor, DwarfValue* value) {
  uint64_t form = attribute.form;
  if (form == DW_FORM_indirect) form = cursor->Unsigned();
  *value = {.form = static_cast<uint16_t>(form)};
  switch (form) {
    case DW_FORM_flag_present:
      value->number = 1;
      return true;
    case DW_FORM_implicit_const:
      value->number = static_cast<uint64_t>(attribute.constant);
      return true;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
      value->number = cursor->Byte();
      return true;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
      value->number = cursor->Fixed(2);
      return true;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
      value->number = cursor->Fixed(3);
      return true;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
      value->number = cursor->Fixed(4);
      return true;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
      value->number = cursor->Fixed(8);
      return true;
    case DW_FORM_data16:
      cursor->Skip(16);
      return true;
    case DW_FORM_addr:
      value->number = cursor->Fixed(unit.address_size);
      return true;
    case DW_FORM_sec_offset:
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_addr:  // of an address' size in DWARF 2
      value->number = cursor->Fixed(unit.offset_size);
      return true;
    case DW_FORM_sdata:
      value->number = static_cast<uint64_t>(cursor->Signed());
      return true;
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_str_index:
    case DW_FORM_GNU_addr_index:
      value->number = cursor->Unsigned();
      return true;
    case DW_FORM_string:
      value->text = cursor->Text();
      return true;
    case DW_FORM_block1:
      cursor->Skip(cursor->Fixed(1));
      return true;
    case DW_FORM_block2:
      cursor->Skip(cursor->Fixed(2));
      return true;
    case DW_FORM_block4:
      cursor->Skip(cursor->Fixed(4));
      return true;
    case DW_FORM_block:
    case DW_FORM_exprloc:
      cursor->Skip(cursor->Unsigned());
      return true;
    default:
      return false;
  }
}

bool ReadDwarfEntry(const DwarfUnit& unit, const DwarfAbbreviations& abbreviations, uint64_t base,
                    bool whole, DwarfCursor* cursor, DwarfEntry* entry) {
  entry->offset = base + cursor->at();
  entry->sibling = {};
  const uint64_t code = cursor->Unsigned();
  if (code == 0) {
    entry->tag = 0;
    entry->has_children = false;
    return cursor->ok();
  }
  const DwarfAbbreviations::Abbreviation* const abbreviation = abbreviations.Find(code);
  if (abbreviation == nullptr) return false;
  const bool is_wanted = whole || IsOfInterest(abbreviation->tag);
  if (is_wanted) *entry = {.offset = entry->offset};
  entry->tag = abbreviation->tag;
  entry->has_children = abbreviation->has_children;
  for (const DwarfAbbreviations::Attribute& attribute : abbreviations.Attributes(*abbreviation)) {
    DwarfValue value;
    if (!ReadDwarfValue(unit, attribute, cursor, &value)) return false;
    if (attribute.name == DW_AT_sibling) {
      entry->sibling = value;
    } else if (is_wanted) {
      if (DwarfValue* const slot = SlotOf(attribute.name, entry)) *slot = value;
    }
  }
  return cursor->ok();
}

std::optional<DwarfReference> ReferenceOf(const DwarfUnit& unit, const DwarfValue& value) {
  switch (value.form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
      if (value.number >= unit.end - unit.offset) return std::nullopt;
      return DwarfReference{.offset = unit.offset + value.number};
    case DW_FORM_ref_addr:
      return DwarfReference{.offset = value.number};
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
      return DwarfReference{.offset = value.number, .in_alternate = true};
    default:
      return std::nullopt;
  }
}

}  // namespace flamefleet::agent
