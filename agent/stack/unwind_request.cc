// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/unwind_request.h"

#include <optional>
#include <utility>
#include <vector>

#include "agent/parse/wire.h"
#include "agent/symbol/byte_source.h"
#include "agent/symbol/packed_section.h"

namespace flamefleet::agent {
namespace {

void Write(const ElfFile::Section& section, ByteWriter* writer) {
  writer->Fixed(section.offset);
  writer->Fixed(section.size);
  writer->Fixed(section.address);
  writer->Fixed(static_cast<uint8_t>(section.compressed));
}

// Of size 0 when there is none.
void Write(const std::optional<ElfFile::Section>& section, ByteWriter* writer) {
  Write(section.value_or(ElfFile::Section{}), writer);
}

ElfFile::Section ReadSection(ByteReader* reader) {
  ElfFile::Section section;
  section.offset = reader->Fixed<uint64_t>();
  section.size = reader->Fixed<uint64_t>();
  section.address = reader->Fixed<uint64_t>();
  section.compressed = reader->Fixed<uint8_t>() != 0;
  return section;
}

std::optional<ElfFile::Section> ReadOptionalSection(ByteReader* reader) {
  const ElfFile::Section section = ReadSection(reader);
  return section.size == 0 ? std::nullopt : std::optional(section);
}

// Nothing where there is no section.
Result<std::string> ReadContent(int file, const std::optional<ElfFile::Section>& section) {
  if (!section) return std::string();
  if (section->size > kMaxUnwindSectionBytes)
    return InvalidArgumentError("build unwind table: a section over 16 MiB");
  if (section->compressed)
    return ReadPackedSection(ByteSource(file), *section, kMaxUnwindSectionBytes);
  std::string content(section->size, '\0');
  FF_RETURN_IF_ERROR(ByteSource(file).ReadInto(content, section->offset));
  return content;
}

}  // namespace

Result<std::string> AnswerUnwindInfo(std::span<const int> files, std::string_view) {
  if (files.size() != 1) return InvalidArgumentError("read unwind rules: want one file");
  FF_ASSIGN_OR_RETURN(const ElfFile elf, ReadElfFile(files[0]));
  ByteWriter writer;
  writer.Fixed(static_cast<uint32_t>(elf.segments.size()));
  for (const ElfFile::Segment& segment : elf.segments) {
    Write({.offset = segment.offset, .size = segment.size, .address = segment.address}, &writer);
    writer.Fixed(static_cast<uint8_t>(segment.executable));
  }
  Write(elf.eh_frame, &writer);
  // Go keeps frame pointers, which lead over its changes of stacks; what its linker writes here
  // does not.
  Write(elf.go_pclntab ? std::nullopt : elf.debug_frame, &writer);
  return writer.Take();
}

Result<ElfFile> RequestUnwindInfo(ParserProcess* parser, int fd) {
  const int files[] = {fd};
  const Result<std::string> answer = parser->Run(ParseKind::kUnwindInfo, files, "");
  if (!answer.ok()) return answer.status();
  ByteReader reader(*answer);
  ElfFile elf;
  const auto segments = reader.Fixed<uint32_t>();
  for (uint32_t i = 0; i < segments && i < kMaxElfSegments; ++i) {
    const ElfFile::Section range = ReadSection(&reader);
    elf.segments.push_back({.offset = range.offset,
                            .size = range.size,
                            .address = range.address,
                            .executable = reader.Fixed<uint8_t>() != 0});
  }
  elf.eh_frame = ReadOptionalSection(&reader);
  elf.debug_frame = ReadOptionalSection(&reader);
  if (!reader.Finished())
    return InvalidArgumentError("read unwind rules: not what the parser writes");
  return elf;
}

Result<std::string> AnswerUnwindTable(std::span<const int> files, std::string_view arguments) {
  ByteReader reader(arguments);
  const std::optional<ElfFile::Section> eh_frame = ReadOptionalSection(&reader);
  const std::optional<ElfFile::Section> debug_frame = ReadOptionalSection(&reader);
  if (files.size() != 1 || !reader.Finished())
    return InvalidArgumentError("build unwind table: want one file and where its sections are");
  FF_ASSIGN_OR_RETURN(const std::string of_eh, ReadContent(files[0], eh_frame));
  const Result<std::string> unpacked = ReadContent(files[0], debug_frame);
  if (!unpacked.ok() && !eh_frame) return unpacked.status();
  const std::string of_debug = unpacked.value_or("");
  FF_ASSIGN_OR_RETURN(
      const UnwindTable table,
      UnwindTable::Build(std::as_bytes(std::span(of_eh)), eh_frame ? eh_frame->address : 0,
                         std::as_bytes(std::span(of_debug))));
  ByteWriter writer;
  writer.Array(table.words());
  return writer.Take();
}

Result<UnwindTable> RequestUnwindTable(ParserProcess* parser, int fd, const ElfFile& elf) {
  const int files[] = {fd};
  ByteWriter arguments;
  Write(elf.eh_frame, &arguments);
  Write(elf.debug_frame, &arguments);
  const Result<std::string> answer = parser->Run(ParseKind::kUnwindTable, files, arguments.Take());
  if (!answer.ok()) return answer.status();
  ByteReader reader(*answer);
  std::vector<uint64_t> words = reader.Array<uint64_t>();
  if (!reader.Finished())
    return InvalidArgumentError("build unwind table: not what the parser writes");
  return UnwindTable::FromWords(std::move(words));
}

}  // namespace flamefleet::agent
