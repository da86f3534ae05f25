// SPDX-License-Identifier: Apache-2.0
// DwarfSections: the debug sections of one ELF file.
//
// What is stored plain is read in pieces as it is needed; what is compressed is unpacked whole,
// since there is no other way into it.
//
// Runs in the parsing child. Thread: one owner. Bounds: kMaxUnpackedDwarfBytes of all compressed
// sections, kMaxDwarfPieceBytes at a time. Errors: kResourceExhausted over them, kInvalidArgument
// for a compression that is not zlib or is damaged.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/symbol/byte_source.h"
#include "agent/symbol/elf_file.h"

namespace flamefleet::agent {

// Of 160 MiB that the child may take (kMaxParserAddressBytes).
constexpr uint64_t kMaxUnpackedDwarfBytes = 64 << 20;
constexpr uint64_t kMaxDwarfPieceBytes = 24 << 20;  // one unit of a C++ program takes about 1 MiB
constexpr size_t kMaxDwarfTextBytes = 4096;

class DwarfSections {
 public:
  static Result<DwarfSections> Open(const ByteSource& source, const ElfFile& elf);

  uint64_t Size(DwarfSection section) const { return parts_[Index(section)].size; }

  // The bytes from `offset` on, `wanted` of them or up to the end of the section, whatever is less;
  // perhaps more. "" beyond the end or when they cannot be read. Valid until the next Peek of the
  // section.
  std::string_view Peek(DwarfSection section, uint64_t offset, size_t wanted);
  // Exactly as many. `buffer` holds them unless they are in memory anyway.
  Result<std::string_view> Read(DwarfSection section, uint64_t offset, uint64_t size,
                                std::string* buffer);
  // The text that begins at `offset`; "" when there is none.
  std::string Text(DwarfSection section, uint64_t offset);

 private:
  struct Part {
    uint64_t offset = 0;  // in the file
    uint64_t size = 0;
    bool in_memory = false;  // `window` is all of it
    std::string window;
    uint64_t window_offset = 0;
  };
  static size_t Index(DwarfSection section) { return static_cast<size_t>(section); }
  explicit DwarfSections(const ByteSource& source) : source_(source) {}

  ByteSource source_;
  std::array<Part, kDwarfSectionCount> parts_;
};

}  // namespace flamefleet::agent
