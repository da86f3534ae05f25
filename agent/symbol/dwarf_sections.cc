// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/dwarf_sections.h"

#include <algorithm>

#include "agent/symbol/packed_section.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kWindowBytes = 16 << 10;

}  // namespace

Result<DwarfSections> DwarfSections::Open(const ByteSource& source, const ElfFile& elf) {
  DwarfSections sections(source);
  uint64_t unpacked = 0;
  for (size_t i = 0; i < kDwarfSectionCount; ++i) {
    if (!elf.dwarf[i]) continue;
    Part& part = sections.parts_[i];
    part.offset = elf.dwarf[i]->offset;
    part.size = elf.dwarf[i]->size;
    if (!elf.dwarf[i]->compressed) continue;
    FF_ASSIGN_OR_RETURN(
        part.window, ReadPackedSection(source, *elf.dwarf[i], kMaxUnpackedDwarfBytes - unpacked));
    part.size = part.window.size();
    part.in_memory = true;
    unpacked += part.size;
  }
  return sections;
}

std::string_view DwarfSections::Peek(DwarfSection section, uint64_t offset, size_t wanted) {
  Part& part = parts_[Index(section)];
  if (offset >= part.size) return {};
  const uint64_t rest = part.size - offset;
  const auto needed = static_cast<size_t>(std::min<uint64_t>(rest, wanted));
  const bool is_inside = offset >= part.window_offset &&
                         offset - part.window_offset <= part.window.size() &&
                         part.window.size() - (offset - part.window_offset) >= needed;
  if (!is_inside) {
    if (needed > kMaxDwarfPieceBytes) return {};
    part.window.resize(
        static_cast<size_t>(std::min<uint64_t>(rest, std::max(kWindowBytes, wanted))));
    part.window_offset = offset;
    if (!source_.ReadInto(part.window, part.offset + offset).ok()) {
      part.window.clear();
      return {};
    }
  }
  return std::string_view(part.window).substr(static_cast<size_t>(offset - part.window_offset));
}

Result<std::string_view> DwarfSections::Read(DwarfSection section, uint64_t offset, uint64_t size,
                                             std::string* buffer) {
  const Part& part = parts_[Index(section)];
  if (offset > part.size || size > part.size - offset)
    return InvalidArgumentError("read DWARF: beyond the end of a section");
  if (part.in_memory)
    return std::string_view(part.window)
        .substr(static_cast<size_t>(offset), static_cast<size_t>(size));
  if (size > kMaxDwarfPieceBytes) return ResourceExhaustedError("read DWARF: a unit over 24 MiB");
  buffer->resize(static_cast<size_t>(size));
  FF_RETURN_IF_ERROR(source_.ReadInto(*buffer, part.offset + offset));
  return std::string_view(*buffer);
}

std::string DwarfSections::Text(DwarfSection section, uint64_t offset) {
  // Most are short.
  for (size_t wanted = 256; wanted <= kMaxDwarfTextBytes; wanted *= 4) {
    const std::string_view bytes = Peek(section, offset, wanted);
    const size_t end = bytes.find('\0');
    if (end != std::string_view::npos) return std::string(bytes.substr(0, end));
  }
  return {};
}

}  // namespace flamefleet::agent
