// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/line_request.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "agent/parse/wire.h"
#include "agent/symbol/dwarf_lookup.h"
#include "agent/symbol/symbol_request.h"

namespace flamefleet::agent {
namespace {

std::string Encode(const SourceLines& lines) {
  ByteWriter writer;
  writer.Fixed(static_cast<uint8_t>(lines.problem));
  writer.Fixed(static_cast<uint32_t>(lines.texts.size()));
  for (const std::string& text : lines.texts)
    writer.Text(text);
  writer.Array(std::span(lines.frames));
  writer.Array(std::span(lines.addresses));
  return writer.Take();
}

// The other file's units, when it is the one that `elf` means.
std::optional<DwarfFile> OpenAlternate(const ByteSource& source, const ElfFile& elf, int fd,
                                       WorkBudget* budget) {
  const ByteSource other(fd);
  const Result<ElfFile> other_elf = ReadElfFile(other);
  const std::string wanted = ReadAlternateLink(source, elf).build_id;
  if (!other_elf.ok() || wanted.empty() || other_elf->build_id != wanted) return std::nullopt;
  Result<DwarfSections> sections = DwarfSections::Open(other, *other_elf);
  if (!sections.ok()) return std::nullopt;
  return DwarfFile(*std::move(sections), budget);
}

}  // namespace

Result<std::string> AnswerLines(std::span<const int> files, std::string_view arguments) {
  ByteReader reader(arguments);
  WorkBudget budget(reader.Fixed<int64_t>());
  const std::vector<uint64_t> addresses = reader.Array<uint64_t>();
  const bool in_order =
      std::ranges::adjacent_find(addresses, std::ranges::greater_equal()) == addresses.end();
  if (files.empty() || files.size() > 2 || !reader.Finished() || !in_order)
    return InvalidArgumentError("read lines: want one or two files and sorted addresses");
  const ByteSource source(files[0]);
  FF_ASSIGN_OR_RETURN(const ElfFile elf, ReadElfFile(source));
  SourceLines none;
  none.addresses.assign(addresses.size(), {.state = SourceLines::State::kNone});
  if (!elf.has_dwarf()) {
    none.problem = LineProblem::kAbsent;
    return Encode(none);
  }
  Result<DwarfSections> sections = DwarfSections::Open(source, elf);
  if (!sections.ok()) {
    none.problem = sections.status().code() == StatusCode::kResourceExhausted
                       ? LineProblem::kTooLarge
                       : LineProblem::kDamaged;
    return Encode(none);
  }
  DwarfFile dwarf(*std::move(sections), &budget);
  std::optional<DwarfFile> alternate =
      files.size() == 2 ? OpenAlternate(source, elf, files[1], &budget) : std::nullopt;
  return Encode(DwarfLookup(&dwarf, alternate ? &*alternate : nullptr).Find(addresses));
}

Result<SourceLines> DecodeLines(std::string_view encoded, size_t address_count) {
  ByteReader reader(encoded);
  SourceLines lines;
  lines.problem = static_cast<LineProblem>(reader.Fixed<uint8_t>());
  const auto text_count = reader.Fixed<uint32_t>();
  lines.texts.clear();
  for (uint32_t i = 0; i < text_count && reader.ok(); ++i)
    lines.texts.emplace_back(reader.Text().substr(0, kMaxLineTextBytes));
  lines.frames = reader.Array<SourceLines::Frame>();
  lines.addresses = reader.Array<SourceLines::Address>();
  const auto frame_is_good = [&lines](const SourceLines::Frame& frame) {
    return frame.function < lines.texts.size() && frame.file < lines.texts.size();
  };
  const auto address_is_good = [&lines](const SourceLines::Address& address) {
    return address.state <= SourceLines::State::kFound && address.first <= lines.frames.size() &&
           address.count <= kMaxInlineDepth &&
           address.count <= lines.frames.size() - address.first &&
           (address.state == SourceLines::State::kFound) == (address.count > 0);
  };
  if (!reader.Finished() || lines.problem > LineProblem::kDamaged ||
      lines.addresses.size() != address_count ||
      !std::ranges::all_of(lines.frames, frame_is_good) ||
      !std::ranges::all_of(lines.addresses, address_is_good))
    return InvalidArgumentError("decode lines: not what the parser writes");
  return lines;
}

Result<SourceLines> RequestLines(ParserProcess* parser, std::span<const int> files,
                                 std::span<const uint64_t> addresses,
                                 std::chrono::nanoseconds budget) {
  FF_CHECK(addresses.size() <= kMaxLineAddresses);
  ByteWriter writer;
  writer.Fixed(int64_t{budget.count()});
  writer.Array(addresses);
  FF_ASSIGN_OR_RETURN(const std::string answer,
                      parser->Run(ParseKind::kLines, files, writer.Take(), budget + kLineGrace));
  return DecodeLines(answer, addresses.size());
}

}  // namespace flamefleet::agent
