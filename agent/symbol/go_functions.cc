// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "agent/symbol/symbol_reader.h"

namespace flamefleet::agent {
namespace {

// Go 1.18 and 1.19; 1.20 and later.
constexpr uint32_t kMagic118 = 0xfffffff0;
constexpr uint32_t kMagic120 = 0xfffffff1;

struct Header {
  uint32_t magic;
  uint8_t zero[2];
  uint8_t min_instruction, pointer_size;
  uint64_t function_count, file_count;
  uint64_t text_start;                                // 0 from Go 1.26 on
  uint64_t names, units, files, programs, functions;  // offsets in this section
};

struct Row {
  uint32_t entry = 0;     // from the start of the text
  uint32_t function = 0;  // from Header::functions
};

// What follows Row::function: entry, then the offset of the name.
struct FunctionHead {
  uint32_t entry = 0;
  int32_t name = 0;
};

// moduledata begins with a pointer, 6 slices and 3 words.
constexpr uint64_t kTextInModule = 8 + 6 * 24 + 3 * 8;
// By which .text may be longer than Go's code when it holds nothing else.
constexpr uint64_t kMaxTextPadding = 64;

// Where Go's code of `size` bytes begins. It is in the header, but for Go 1.26, where the runtime's
// moduledata says it (unless the loader fills that in) or it is all that .text holds. Better no
// name than one of another function.
Result<uint64_t> TextStart(const ByteSource& source, const ElfFile& elf, const Header& header,
                           uint64_t size) {
  if (header.text_start != 0) return header.text_start;
  uint64_t text = 0;
  if (elf.go_module && elf.go_module->size >= kTextInModule + sizeof(text)) {
    FF_RETURN_IF_ERROR(source.ReadExact(std::as_writable_bytes(std::span(&text, 1)),
                                        elf.go_module->offset + kTextInModule));
    if (text != 0) return text;
  }
  if (elf.text && size <= elf.text->size && elf.text->size - size <= kMaxTextPadding)
    return elf.text->address;
  return NotFoundError("read Go functions: where their code begins is not known");
}

// Reads small pieces that come in about ascending order.
class PieceReader {
 public:
  PieceReader(const ByteSource& source, uint64_t begin, uint64_t end)
      : source_(source), begin_(begin), end_(end) {}

  template <typename T>
  bool Read(uint64_t offset, T* piece) {
    if (offset > end_ - begin_ || sizeof(T) > end_ - begin_ - offset) return false;
    const uint64_t at = begin_ + offset;
    if (at < first_ || at + sizeof(T) > first_ + bytes_.size()) {
      bytes_.resize(static_cast<size_t>(std::min<uint64_t>(kWindow, end_ - at)));
      first_ = at;
      if (!source_.ReadInto(bytes_, at).ok()) {
        bytes_.clear();
        return false;
      }
    }
    std::memcpy(piece, bytes_.data() + (at - first_), sizeof(T));
    return true;
  }

 private:
  static constexpr size_t kWindow = 64 << 10;
  const ByteSource& source_;
  const uint64_t begin_;
  const uint64_t end_;
  uint64_t first_ = 0;
  std::vector<char> bytes_;
};

}  // namespace

Status SymbolReader::AddGoFunctions(const ByteSource& source, uint32_t file, const ElfFile& elf) {
  const ElfFile::Section& section = *elf.go_pclntab;
  Header header;
  if (section.size < sizeof(header)) return InvalidArgumentError("read .gopclntab: too short");
  FF_RETURN_IF_ERROR(
      source.ReadExact(std::as_writable_bytes(std::span(&header, 1)), section.offset));
  if ((header.magic != kMagic118 && header.magic != kMagic120) || header.pointer_size != 8)
    return InvalidArgumentError("read .gopclntab: of a Go before 1.18 or after those we know");
  const uint64_t rows_size = header.function_count * sizeof(Row) + sizeof(uint32_t);
  if (header.function_count == 0 || header.function_count > kMaxFunctions ||
      header.functions > section.size || rows_size > section.size - header.functions ||
      header.names >= section.size || header.units <= header.names || header.units > section.size)
    return InvalidArgumentError("read .gopclntab: its parts do not fit");

  // The end of the last function follows the rows as one more entry.
  std::vector<Row> rows(header.function_count);
  uint32_t end = 0;
  const uint64_t rows_offset = section.offset + header.functions;
  FF_RETURN_IF_ERROR(source.ReadInto(rows, rows_offset));
  FF_RETURN_IF_ERROR(source.ReadExact(std::as_writable_bytes(std::span(&end, 1)),
                                      rows_offset + header.function_count * sizeof(Row)));
  FF_ASSIGN_OR_RETURN(const uint64_t text, TextStart(source, elf, header, end));
  const std::optional<uint32_t> first_name =
      AddNames(file, section.offset + header.names, header.units - header.names);
  if (!first_name) return ResourceExhaustedError("read .gopclntab: too many names");
  PieceReader pieces(source, rows_offset, section.offset + section.size);
  for (size_t i = 0; i < rows.size(); ++i) {
    const uint32_t next = i + 1 < rows.size() ? rows[i + 1].entry : end;
    FunctionHead head;
    if (next <= rows[i].entry || !pieces.Read(rows[i].function, &head) || head.name < 0 ||
        static_cast<uint64_t>(head.name) >= header.units - header.names)
      continue;
    Add({.address = text + rows[i].entry,
         .size = next - rows[i].entry,
         .name = *first_name + static_cast<uint32_t>(head.name)});
  }
  return OkStatus();
}

}  // namespace flamefleet::agent
