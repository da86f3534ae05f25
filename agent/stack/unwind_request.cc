// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/unwind_request.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "agent/parse/wire.h"
#include "agent/symbol/byte_source.h"

namespace flamefleet::agent {
namespace {

void Write(const ElfFile::Section& section, ByteWriter* writer) {
  writer->Fixed(section.offset);
  writer->Fixed(section.size);
  writer->Fixed(section.address);
}

ElfFile::Section ReadSection(ByteReader* reader) {
  ElfFile::Section section;
  section.offset = reader->Fixed<uint64_t>();
  section.size = reader->Fixed<uint64_t>();
  section.address = reader->Fixed<uint64_t>();
  return section;
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
  writer.Fixed(static_cast<uint8_t>(elf.eh_frame.has_value()));
  Write(elf.eh_frame.value_or(ElfFile::Section{}), &writer);
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
  const bool has_rules = reader.Fixed<uint8_t>() != 0;
  const ElfFile::Section eh_frame = ReadSection(&reader);
  if (!reader.Finished())
    return InvalidArgumentError("read unwind rules: not what the parser writes");
  if (has_rules) elf.eh_frame = eh_frame;
  return elf;
}

Result<std::string> AnswerUnwindTable(std::span<const int> files, std::string_view arguments) {
  ByteReader reader(arguments);
  const ElfFile::Section section = ReadSection(&reader);
  if (files.size() != 1 || !reader.Finished() || section.size > kMaxEhFrameBytes)
    return InvalidArgumentError("build unwind table: want one file and its .eh_frame");
  std::vector<std::byte> eh_frame(section.size);
  FF_RETURN_IF_ERROR(ByteSource(files[0]).ReadExact(eh_frame, section.offset));
  FF_ASSIGN_OR_RETURN(const UnwindTable table, UnwindTable::Build(eh_frame, section.address));
  ByteWriter writer;
  writer.Array(table.words());
  return writer.Take();
}

Result<UnwindTable> RequestUnwindTable(ParserProcess* parser, int fd,
                                       const ElfFile::Section& eh_frame) {
  const int files[] = {fd};
  ByteWriter arguments;
  Write(eh_frame, &arguments);
  const Result<std::string> answer = parser->Run(ParseKind::kUnwindTable, files, arguments.Take());
  if (!answer.ok()) return answer.status();
  ByteReader reader(*answer);
  std::vector<uint64_t> words = reader.Array<uint64_t>();
  if (!reader.Finished())
    return InvalidArgumentError("build unwind table: not what the parser writes");
  return UnwindTable::FromWords(std::move(words));
}

}  // namespace flamefleet::agent
