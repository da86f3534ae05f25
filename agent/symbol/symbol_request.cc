// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/symbol_request.h"

#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <utility>

#include "agent/symbol/symbol_reader.h"
#include "base/hex.h"

namespace flamefleet::agent {
namespace {

constexpr uint64_t kMaxChecksummedBytes = 1 << 30;  // a second of CPU time
constexpr uint32_t kNoFile = UINT32_MAX;
constexpr size_t kMaxLinkPathBytes = 4095;  // PATH_MAX

// As .gnu_debuglink has it: a name, its end, padding to 4, a CRC-32 of the whole file.
struct DebugLink {
  std::string name;
  uint32_t checksum = 0;
};

DebugLink ReadDebugLink(const ByteSource& source, const ElfFile& elf) {
  constexpr size_t kMaxBytes = kMaxDebugLinkBytes + 1 + 3 + sizeof(uint32_t);
  if (!elf.gnu_debuglink || elf.gnu_debuglink->size > kMaxBytes) return {};
  std::string bytes(elf.gnu_debuglink->size, '\0');
  if (!source.ReadInto(bytes, elf.gnu_debuglink->offset).ok()) return {};
  const size_t end = bytes.find('\0');
  if (end == std::string::npos) return {};
  const size_t at = (end + 4) & ~size_t{3};
  DebugLink link;
  if (bytes.size() < at + sizeof(link.checksum)) return {};
  std::memcpy(&link.checksum, bytes.data() + at, sizeof(link.checksum));
  bytes.resize(end);
  link.name = std::move(bytes);
  return link;
}

Result<uint32_t> Checksum(int fd) {
  std::vector<std::byte> buffer(256 << 10);
  uLong checksum = ::crc32(0, nullptr, 0);
  for (uint64_t at = 0; at < kMaxChecksummedBytes;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got < 0) return DataLossError("read debug file: it cannot be read");
    if (got == 0) return static_cast<uint32_t>(checksum);
    checksum =
        ::crc32(checksum, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(got));
    at += static_cast<uint64_t>(got);
  }
  return ResourceExhaustedError("read debug file: over 1 GiB and without a build ID");
}

Status CheckDebugFile(int fd, const ElfFile& debug, const ElfFile& program, const DebugLink& link) {
  if (!program.build_id.empty() && program.build_id == debug.build_id) return OkStatus();
  if (program.build_id.empty() && !link.name.empty()) {
    FF_ASSIGN_OR_RETURN(const uint32_t checksum, Checksum(fd));
    if (checksum == link.checksum) return OkStatus();
  }
  return InvalidArgumentError("read debug file: it is of another program");
}

bool IsFileName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxDebugLinkBytes && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

bool IsBuildId(std::string_view text) {
  return text.size() <= 2 * kMaxBuildIdBytes &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

AlternateLink ReadAlternateLink(const ByteSource& source, const ElfFile& elf) {
  constexpr size_t kMaxBytes = kMaxLinkPathBytes + 1 + kMaxBuildIdBytes;
  if (!elf.gnu_debugaltlink || elf.gnu_debugaltlink->size > kMaxBytes) return {};
  std::string bytes(elf.gnu_debugaltlink->size, '\0');
  if (!source.ReadInto(bytes, elf.gnu_debugaltlink->offset).ok()) return {};
  const size_t end = bytes.find('\0');
  if (end == std::string::npos) return {};
  return {.path = bytes.substr(0, end), .build_id = ToHex(bytes.substr(end + 1))};
}

Result<std::string> AnswerSymbols(std::span<const int> files, std::string_view) {
  if (files.empty() || files.size() > 2)
    return InvalidArgumentError("read symbols: want one or two files");
  const ByteSource source(files[0]);
  FF_ASSIGN_OR_RETURN(const ElfFile elf, ReadElfFile(source));
  const DebugLink link = ReadDebugLink(source, elf);
  SymbolReader reader;
  bool complete = elf.symtab.has_value();
  uint32_t dwarf_file = elf.has_dwarf() ? 0 : kNoFile;
  AlternateLink alternate = ReadAlternateLink(source, elf);
  // A part that is damaged or too large leaves its names out: others may have them.
  if (elf.symtab) reader.AddSymbols(source, 0, elf, *elf.symtab).IgnoreError();
  if (files.size() == 2) {
    const ByteSource debug_source(files[1]);
    FF_ASSIGN_OR_RETURN(const ElfFile debug, ReadElfFile(debug_source));
    FF_RETURN_IF_ERROR(CheckDebugFile(files[1], debug, elf, link));
    if (!debug.symtab) return NotFoundError("read debug file: it has no symbols");
    FF_RETURN_IF_ERROR(reader.AddSymbols(debug_source, 1, elf, *debug.symtab));
    complete = true;
    if (dwarf_file == kNoFile && debug.has_dwarf()) {
      dwarf_file = 1;
      alternate = ReadAlternateLink(debug_source, debug);
    }
  }
  if (elf.go_pclntab && !complete) reader.AddGoFunctions(source, 0, elf).IgnoreError();
  if (elf.gnu_debugdata && !complete) reader.AddDebugData(source, elf).IgnoreError();
  if (elf.dynsym && !elf.symtab) reader.AddSymbols(source, 0, elf, *elf.dynsym).IgnoreError();
  if (elf.eh_frame_hdr) reader.AddFrameStarts(source, elf).IgnoreError();

  ByteWriter writer;
  writer.Fixed(static_cast<uint32_t>(elf.segments.size()));
  for (const ElfFile::Segment& segment : elf.segments) {
    writer.Fixed(segment.offset);
    writer.Fixed(segment.size);
    writer.Fixed(segment.address);
  }
  writer.Text(elf.build_id);
  writer.Text(IsFileName(link.name) ? link.name : "");
  writer.Fixed(static_cast<uint8_t>(complete));
  writer.Fixed(dwarf_file);
  writer.Text(alternate.path);
  writer.Text(alternate.build_id);
  reader.Build(elf).Encode(&writer);
  return writer.Take();
}

std::optional<uint64_t> ProgramSymbols::AddressOfOffset(uint64_t offset) const {
  for (const Segment& segment : segments) {
    if (offset >= segment.offset && offset - segment.offset < segment.size)
      return segment.address + (offset - segment.offset);
  }
  return std::nullopt;
}

Result<ProgramSymbols> DecodeSymbols(std::string_view encoded) {
  ByteReader reader(encoded);
  ProgramSymbols symbols;
  const auto segment_count = reader.Fixed<uint32_t>();
  for (uint32_t i = 0; i < segment_count && i < kMaxElfSegments; ++i) {
    ProgramSymbols::Segment segment;
    segment.offset = reader.Fixed<uint64_t>();
    segment.size = reader.Fixed<uint64_t>();
    segment.address = reader.Fixed<uint64_t>();
    symbols.segments.push_back(segment);
  }
  symbols.build_id = reader.Text();
  symbols.debug_link = reader.Text();
  symbols.has_symtab = reader.Fixed<uint8_t>() != 0;
  const auto dwarf_file = reader.Fixed<uint32_t>();
  if (dwarf_file < kMaxParseFiles) symbols.dwarf_file = dwarf_file;
  symbols.alternate.path = reader.Text();
  symbols.alternate.build_id = reader.Text();
  FF_ASSIGN_OR_RETURN(symbols.table, SymbolTable::Decode(&reader));
  if (!reader.Finished() || !IsBuildId(symbols.build_id) ||
      !IsBuildId(symbols.alternate.build_id) || symbols.alternate.path.size() > kMaxLinkPathBytes ||
      symbols.alternate.path.find('\0') != std::string::npos ||
      (!symbols.debug_link.empty() && !IsFileName(symbols.debug_link)))
    return InvalidArgumentError("decode symbols: not what the parser writes");
  return symbols;
}

Result<ProgramSymbols> RequestSymbols(ParserProcess* parser, std::span<const int> files,
                                      std::string* encoded) {
  FF_ASSIGN_OR_RETURN(*encoded, parser->Run(ParseKind::kSymbols, files, ""));
  return DecodeSymbols(*encoded);
}

}  // namespace flamefleet::agent
