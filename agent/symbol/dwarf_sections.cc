// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/dwarf_sections.h"

#include <elf.h>
#include <zlib.h>

#include <algorithm>
#include <span>

namespace flamefleet::agent {
namespace {

constexpr size_t kWindowBytes = 16 << 10;
constexpr size_t kPackedChunkBytes = 256 << 10;

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
    FF_RETURN_IF_ERROR(sections.Unpack(*elf.dwarf[i], kMaxUnpackedDwarfBytes - unpacked, &part));
    unpacked += part.size;
  }
  return sections;
}

Status DwarfSections::Unpack(const ElfFile::Section& section, uint64_t limit, Part* part) {
  Elf64_Chdr header;
  if (section.size < sizeof(header)) return InvalidArgumentError("read DWARF: a section too short");
  FF_RETURN_IF_ERROR(
      source_.ReadExact(std::as_writable_bytes(std::span(&header, 1)), section.offset));
  if (header.ch_type != ELFCOMPRESS_ZLIB)
    return InvalidArgumentError("read DWARF: compressed, but not with zlib");
  if (header.ch_size > limit)
    return ResourceExhaustedError("read DWARF: over 64 MiB when unpacked");
  part->window.resize(header.ch_size);
  z_stream stream{};
  if (::inflateInit(&stream) != Z_OK) return ResourceExhaustedError("read DWARF: no memory");
  stream.next_out = reinterpret_cast<Bytef*>(part->window.data());
  stream.avail_out = static_cast<uInt>(part->window.size());
  std::string packed;
  int result = Z_OK;
  Status read;
  for (uint64_t at = sizeof(header); at < section.size && result == Z_OK && read.ok();) {
    packed.resize(std::min<uint64_t>(kPackedChunkBytes, section.size - at));
    read = source_.ReadInto(packed, section.offset + at);
    at += packed.size();
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    if (read.ok()) result = ::inflate(&stream, Z_NO_FLUSH);
  }
  const bool is_whole = result == Z_STREAM_END && stream.avail_out == 0;
  ::inflateEnd(&stream);
  FF_RETURN_IF_ERROR(read);
  if (!is_whole) return InvalidArgumentError("read DWARF: a damaged compressed section");
  part->size = header.ch_size;
  part->in_memory = true;
  return OkStatus();
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
