// SPDX-License-Identifier: Apache-2.0
// ElfFile: of an ELF file what naming addresses needs: segments, build ID, where the symbols are.
//
// The file belongs to whoever is profiled: every offset, size and count in it is checked, reads are
// pread into bounded buffers, nothing is mapped. Runs in the parsing child.
//
// Thread: any; immutable. Units: bytes. Bounds: the constants below. Errors: kInvalidArgument for
// what is not a 64-bit little-endian ELF or contradicts itself, kDataLoss when it is shorter than
// it says. Source: man 5 elf
#pragma once

#include <elf.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/symbol/byte_source.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr size_t kMaxElfSegments = 512;
constexpr size_t kMaxElfSections = 16384;
constexpr size_t kMaxSectionNamesBytes = 64 << 10;
constexpr size_t kMaxElfNoteBytes = 64 << 10;
constexpr size_t kMaxBuildIdBytes = 64;  // GNU uses 20

// What of DWARF naming and lines are in; dwarf_sections.h reads them.
enum class DwarfSection : size_t {
  kInfo,
  kAbbrev,
  kLine,
  kStr,
  kLineStr,
  kRanges,
  kRnglists,
  kStrOffsets,
  kAddr,
};
constexpr size_t kDwarfSectionCount = 9;

// Of the files that can run here.
#if defined(__x86_64__)
constexpr uint16_t kElfMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kElfMachine = EM_AARCH64;
#else
#error "unwinding knows x86-64 and arm64 only"
#endif

struct ElfFile {
  struct Segment {  // PT_LOAD
    uint64_t offset = 0;
    uint64_t size = 0;  // in the file
    uint64_t address = 0;
    bool executable = false;
  };
  // One that has content in this file.
  struct Section {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t address = 0;
    bool compressed = false;
  };
  struct AddressRange {
    uint64_t start = 0;
    uint64_t end = 0;
  };
  struct SymbolSection {
    uint64_t offset = 0;
    uint64_t count = 0;
    uint64_t strings_offset = 0;
    uint64_t strings_size = 0;
  };

  uint16_t machine = EM_NONE;  // the processor that it is for
  std::vector<Segment> segments;
  std::vector<AddressRange> code;  // executable sections, in the order of addresses
  std::optional<SymbolSection> symtab;
  std::optional<SymbolSection> dynsym;
  std::optional<Section> text;              // .text
  std::optional<Section> plt;               // calls into other files, by the linker
  std::optional<Section> eh_frame;          // call frame information
  std::optional<Section> eh_frame_hdr;      // where its functions begin
  std::optional<Section> debug_frame;       // call frame information for debuggers
  std::optional<Section> go_pclntab;        // Go's own table of functions
  std::optional<Section> go_module;         // .go.module: what the runtime knows of the program
  std::optional<Section> gnu_debugdata;     // a symbol table in xz
  std::optional<Section> gnu_debuglink;     // name and checksum of a file with the symbols
  std::optional<Section> gnu_debugaltlink;  // name and build ID of what dwz moved to a common file
  std::array<std::optional<Section>, kDwarfSectionCount> dwarf;
  bool has_dwarf() const { return dwarf[static_cast<size_t>(DwarfSection::kInfo)].has_value(); }
  std::string build_id;  // hexadecimal; "" when there is none

  // Where `size` bytes from `offset` on are mapped at `start` to be executed: the address of an
  // instruction in the process minus its address in the file.
  std::optional<uint64_t> BiasOfMapping(uint64_t start, uint64_t size, uint64_t offset) const;
};

Result<ElfFile> ReadElfFile(const ByteSource& source);
inline Result<ElfFile> ReadElfFile(int fd) {
  return ReadElfFile(ByteSource(fd));
}

// The GNU build ID in a run of ELF notes, in hexadecimal; "" when there is none.
std::string BuildIdOfNotes(std::string_view notes);

}  // namespace flamefleet::agent
