// SPDX-License-Identifier: Apache-2.0
#include "agent/stack/unwind_request.h"

#include <optional>
#include <utility>
#include <vector>

#include "agent/parse/wire.h"
#include "agent/stack/go_rules.h"
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

// The sections that tables are made from.
void WriteSections(const ElfFile& elf, ByteWriter* writer) {
  Write(elf.eh_frame, writer);
  Write(elf.debug_frame, writer);
  Write(elf.go_pclntab, writer);
  Write(elf.go_module, writer);
  Write(elf.text, writer);
  Write(elf.plt, writer);
}

void ReadSections(ByteReader* reader, ElfFile* elf) {
  elf->eh_frame = ReadOptionalSection(reader);
  elf->debug_frame = ReadOptionalSection(reader);
  elf->go_pclntab = ReadOptionalSection(reader);
  elf->go_module = ReadOptionalSection(reader);
  elf->text = ReadOptionalSection(reader);
  elf->plt = ReadOptionalSection(reader);
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

// On arm64 the linker says nothing of it: nothing is stored there.
void VisitPlt(const ElfFile::Section& plt, const CfiVisitor& visit) {
  const CfiRow row{.pc = plt.address, .rule = {.cfa = FF_CFA_SP}};
  if (plt.size <= UINT64_MAX - plt.address) visit(row.pc, row.pc + plt.size, {&row, 1});
}

}  // namespace

Result<std::string> AnswerUnwindInfo(std::span<const int> files, std::string_view) {
  if (files.size() != 1) return InvalidArgumentError("read unwind rules: want one file");
  FF_ASSIGN_OR_RETURN(ElfFile elf, ReadElfFile(files[0]));
  if (elf.machine != kElfMachine)
    return InvalidArgumentError("read unwind rules: the file is for another processor");
  // What Go's linker writes there says nothing of frame pointers and changes of stacks.
  if (elf.go_pclntab) elf.debug_frame.reset();
  ByteWriter writer;
  writer.Fixed(static_cast<uint32_t>(elf.segments.size()));
  for (const ElfFile::Segment& segment : elf.segments) {
    Write({.offset = segment.offset, .size = segment.size, .address = segment.address}, &writer);
    writer.Fixed(static_cast<uint8_t>(segment.executable));
  }
  WriteSections(elf, &writer);
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
  ReadSections(&reader, &elf);
  if (!reader.Finished())
    return InvalidArgumentError("read unwind rules: not what the parser writes");
  return elf;
}

Result<std::string> AnswerUnwindTable(std::span<const int> files, std::string_view arguments) {
  ByteReader reader(arguments);
  ElfFile elf;
  ReadSections(&reader, &elf);
  if (files.size() != 1 || !reader.Finished())
    return InvalidArgumentError("build unwind table: want one file and where its sections are");
  FF_ASSIGN_OR_RETURN(const std::string of_eh, ReadContent(files[0], elf.eh_frame));
  const Result<std::string> unpacked = ReadContent(files[0], elf.debug_frame);
  if (!unpacked.ok() && !elf.eh_frame) return unpacked.status();
  const std::string of_debug = unpacked.value_or("");
  const ByteSource source(files[0]);
  const auto more = [&](const CfiVisitor& visit) {
    if (kElfMachine == EM_AARCH64 && elf.plt) VisitPlt(*elf.plt, visit);
    return elf.go_pclntab ? ReadGoRules(source, elf, visit) : OkStatus();
  };
  FF_ASSIGN_OR_RETURN(
      const UnwindTable table,
      UnwindTable::Build(std::as_bytes(std::span(of_eh)), elf.eh_frame ? elf.eh_frame->address : 0,
                         std::as_bytes(std::span(of_debug)), more));
  ByteWriter writer;
  writer.Array(table.words());
  return writer.Take();
}

Result<UnwindTable> RequestUnwindTable(ParserProcess* parser, int fd, const ElfFile& elf) {
  const int files[] = {fd};
  ByteWriter arguments;
  WriteSections(elf, &arguments);
  const Result<std::string> answer = parser->Run(ParseKind::kUnwindTable, files, arguments.Take());
  if (!answer.ok()) return answer.status();
  ByteReader reader(*answer);
  std::vector<uint64_t> words = reader.Array<uint64_t>();
  if (!reader.Finished())
    return InvalidArgumentError("build unwind table: not what the parser writes");
  return UnwindTable::FromWords(std::move(words));
}

}  // namespace flamefleet::agent
