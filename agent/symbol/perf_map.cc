// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/perf_map.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "agent/parse/wire.h"

namespace flamefleet::agent {
namespace {

struct Part {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t begins_inside = 0;  // 1: its first line is the end of one
};

struct Line {
  uint64_t start = 0;
  uint64_t end = 0;
  uint32_t name_size = 0;  // names follow each other
  uint32_t reserved = 0;
};

struct PartAnswer {
  uint64_t consumed = 0;  // bytes up to the end of the last whole line
};

std::optional<uint64_t> TakeHex(std::string_view* text) {
  if (text->starts_with("0x") || text->starts_with("0X")) text->remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value, 16);
  const auto size = static_cast<size_t>(end - text->data());
  if (error != std::errc() || size == text->size() || *end != ' ') return std::nullopt;
  text->remove_prefix(size + 1);
  return value;
}

void ParseLine(std::string_view line, std::vector<Line>* lines, std::string* names) {
  const std::optional<uint64_t> start = TakeHex(&line);
  const std::optional<uint64_t> size = start ? TakeHex(&line) : std::nullopt;
  if (!size || *size == 0 || *size > UINT64_MAX - *start) return;
  line = line.substr(0, kMaxMadeNameBytes);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.empty()) return;
  lines->push_back(
      {.start = *start, .end = *start + *size, .name_size = static_cast<uint32_t>(line.size())});
  names->append(line);
}

// What is in the file right before the offset.
std::string ReadTail(int fd, uint64_t offset) {
  std::string tail(std::min<uint64_t>(offset, kPerfMapTailBytes), '\0');
  const ssize_t got =
      ::pread(fd, tail.data(), tail.size(), static_cast<off_t>(offset - tail.size()));
  tail.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return tail;
}

}  // namespace

Result<std::string> AnswerPerfMap(std::span<const int> files, std::string_view arguments) {
  ByteReader reader(arguments);
  const Part part = reader.Fixed<Part>();
  if (files.size() != 1 || !reader.Finished() || part.size > kMaxPerfMapChunkBytes)
    return InvalidArgumentError("read perf map: want one file and a part of it");
  std::string text(part.size, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::pread(files[0], text.data() + filled, text.size() - filled,
                                static_cast<off_t>(part.offset + filled));
    if (got < 0) return DataLossError("read perf map: it cannot be read");
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  std::string_view rest(text.data(), filled);
  if (part.begins_inside != 0) rest.remove_prefix(std::min(rest.find('\n') + 1, rest.size()));
  std::vector<Line> lines;
  std::string names;
  for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    ParseLine(rest.substr(0, end), &lines, &names);
    rest.remove_prefix(end + 1);
  }
  PartAnswer answer{.consumed = filled - rest.size()};
  // A line longer than a part is none: go on behind it.
  if (answer.consumed == 0 && filled == kMaxPerfMapChunkBytes) answer.consumed = filled;
  ByteWriter writer;
  writer.Fixed(answer);
  writer.Array(std::span<const Line>(lines));
  writer.Text(names);
  return writer.Take();
}

bool PerfMap::IsContinuedBy(const MappedFile& file) const {
  return file.device == device_ && file.inode == inode_ && file.size >= offset_ &&
         ReadTail(file.fd.get(), offset_) == tail_;
}

Status PerfMap::Update(const MappedFile& file, ParserProcess* parser) {
  if (!IsContinuedBy(file)) {
    functions_.Clear();
    device_ = file.device;
    inode_ = file.inode;
    offset_ = 0;
    tail_.clear();
  }
  const bool skips = file.size - offset_ > kMaxPerfMapReadBytes;
  if (skips) offset_ = file.size - kMaxPerfMapReadBytes;
  uint64_t begins_inside = skips ? 1 : 0;
  while (offset_ < file.size) {
    ByteWriter arguments;
    arguments.Fixed(Part{.offset = offset_,
                         .size = std::min(kMaxPerfMapChunkBytes, file.size - offset_),
                         .begins_inside = std::exchange(begins_inside, 0)});
    const int files[] = {file.fd.get()};
    const Result<std::string> bytes = parser->Run(ParseKind::kPerfMap, files, arguments.Take());
    if (!bytes.ok()) return bytes.status();
    const Result<uint64_t> consumed = Add(*bytes);
    if (!consumed.ok()) return consumed.status();
    if (*consumed == 0) break;  // half a line: the process is just writing it
    offset_ += *consumed;
    tail_ = ReadTail(file.fd.get(), offset_);
  }
  return OkStatus();
}

Result<uint64_t> PerfMap::Add(std::string_view answer) {
  ByteReader reader(answer);
  const PartAnswer head = reader.Fixed<PartAnswer>();
  const std::vector<Line> lines = reader.Array<Line>();
  std::string_view names = reader.Text();
  if (!reader.Finished() || head.consumed > kMaxPerfMapChunkBytes)
    return InvalidArgumentError("read perf map: not what the parser writes");
  for (const Line& line : lines) {
    if (line.start >= line.end || line.name_size > std::min(names.size(), kMaxMadeNameBytes))
      return InvalidArgumentError("read perf map: not what the parser writes");
    functions_.Insert(line.start, line.end, names.substr(0, line.name_size));
    names.remove_prefix(line.name_size);
  }
  return head.consumed;
}

}  // namespace flamefleet::agent
