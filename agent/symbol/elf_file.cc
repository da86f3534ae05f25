// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "base/hex.h"

namespace flamefleet::agent {
namespace {

Status CheckHeader(const Elf64_Ehdr& header) {
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return InvalidArgumentError("read ELF: wrong magic");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return InvalidArgumentError("read ELF: not 64-bit little-endian");
  if (header.e_phnum > kMaxElfSegments || header.e_shnum > kMaxElfSections)
    return InvalidArgumentError("read ELF: too many segments or sections");
  if ((header.e_phnum > 0 && header.e_phentsize != sizeof(Elf64_Phdr)) ||
      (header.e_shnum > 0 && header.e_shentsize != sizeof(Elf64_Shdr)))
    return InvalidArgumentError("read ELF: headers of unknown size");
  return OkStatus();
}

size_t PaddedTo4(uint64_t size) {
  return static_cast<size_t>((size + 3) & ~uint64_t{3});
}

Status ReadSegments(const ByteSource& source, const Elf64_Ehdr& header, ElfFile* file) {
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  FF_RETURN_IF_ERROR(source.ReadInto(segments, header.e_phoff));
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD) {
      file->segments.push_back({.offset = segment.p_offset,
                                .size = segment.p_filesz,
                                .address = segment.p_vaddr,
                                .executable = (segment.p_flags & PF_X) != 0});
    } else if (segment.p_type == PT_NOTE && file->build_id.empty() &&
               segment.p_filesz <= kMaxElfNoteBytes) {
      std::vector<char> notes(segment.p_filesz);
      FF_RETURN_IF_ERROR(source.ReadInto(notes, segment.p_offset));
      file->build_id = BuildIdOfNotes({notes.data(), notes.size()});
    }
  }
  return OkStatus();
}

// The names of sections, one after the other; those beyond the bound are left out.
Result<std::string> ReadSectionNames(const ByteSource& source, const Elf64_Ehdr& header,
                                     const std::vector<Elf64_Shdr>& sections) {
  if (header.e_shstrndx >= sections.size()) return std::string();
  const Elf64_Shdr& section = sections[header.e_shstrndx];
  std::string names(std::min<uint64_t>(section.sh_size, kMaxSectionNamesBytes), '\0');
  FF_RETURN_IF_ERROR(source.ReadInto(names, section.sh_offset));
  names.push_back('\0');  // the last one ends
  return names;
}

// Where the section of this name belongs in `file`; null for a name of no interest.
std::optional<ElfFile::Section>* SlotOf(std::string_view name, ElfFile* file) {
  if (name == ".text") return &file->text;
  if (name == ".plt") return &file->plt;
  if (name == ".eh_frame") return &file->eh_frame;
  if (name == ".eh_frame_hdr") return &file->eh_frame_hdr;
  if (name == ".debug_frame") return &file->debug_frame;
  // The second one is that of position-independent programs.
  if (name == ".gopclntab" || name == ".data.rel.ro.gopclntab") return &file->go_pclntab;
  if (name == ".go.module") return &file->go_module;
  if (name == ".gnu_debugdata") return &file->gnu_debugdata;
  if (name == ".gnu_debuglink") return &file->gnu_debuglink;
  if (name == ".gnu_debugaltlink") return &file->gnu_debugaltlink;
  // By DwarfSection.
  constexpr std::array<std::string_view, kDwarfSectionCount> kDwarfNames = {
      ".debug_info",   ".debug_abbrev",   ".debug_line",        ".debug_str", ".debug_line_str",
      ".debug_ranges", ".debug_rnglists", ".debug_str_offsets", ".debug_addr"};
  const auto found = std::ranges::find(kDwarfNames, name);
  if (found != kDwarfNames.end())
    return &file->dwarf[static_cast<size_t>(found - kDwarfNames.begin())];
  return nullptr;
}

// The symbols of a table that has its content here (not so in what was split off as debug file).
void SetSymbols(const std::vector<Elf64_Shdr>& sections, const Elf64_Shdr& section,
                std::optional<ElfFile::SymbolSection>* symbols) {
  if (section.sh_entsize != sizeof(Elf64_Sym) || section.sh_link >= sections.size()) return;
  const Elf64_Shdr& strings = sections[section.sh_link];
  *symbols = {.offset = section.sh_offset,
              .count = section.sh_size / sizeof(Elf64_Sym),
              .strings_offset = strings.sh_offset,
              .strings_size = strings.sh_size};
}

Status ReadSections(const ByteSource& source, const Elf64_Ehdr& header, ElfFile* file) {
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  FF_RETURN_IF_ERROR(source.ReadInto(sections, header.e_shoff));
  FF_ASSIGN_OR_RETURN(const std::string names, ReadSectionNames(source, header, sections));
  for (const Elf64_Shdr& section : sections) {
    if ((section.sh_flags & SHF_EXECINSTR) != 0 && section.sh_size > 0)
      file->code.push_back({section.sh_addr, section.sh_addr + section.sh_size});
    if (section.sh_type == SHT_SYMTAB) SetSymbols(sections, section, &file->symtab);
    if (section.sh_type == SHT_DYNSYM) SetSymbols(sections, section, &file->dynsym);
    const bool has_content =
        section.sh_type == SHT_PROGBITS || section.sh_type == SHT_X86_64_UNWIND;
    if (!has_content || section.sh_name >= names.size()) continue;
    const std::string_view name = names.c_str() + section.sh_name;
    if (std::optional<ElfFile::Section>* const slot = SlotOf(name, file)) {
      *slot = {.offset = section.sh_offset,
               .size = section.sh_size,
               .address = section.sh_addr,
               .compressed = (section.sh_flags & SHF_COMPRESSED) != 0};
    }
  }
  std::ranges::sort(file->code, {}, &ElfFile::AddressRange::start);
  return OkStatus();
}

}  // namespace

std::optional<uint64_t> ElfFile::BiasOfMapping(uint64_t start, uint64_t size,
                                               uint64_t offset) const {
  for (const Segment& segment : segments) {
    // Pages are mapped whole: a neighbour in the file may come with them, but is not executable.
    const bool is_mapped = segment.offset < offset + size && offset < segment.offset + segment.size;
    if (segment.executable && is_mapped)
      return (start - offset) - (segment.address - segment.offset);
  }
  return std::nullopt;
}

std::string BuildIdOfNotes(std::string_view notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data(), sizeof(header));
    notes.remove_prefix(sizeof(header));
    const size_t name_size = PaddedTo4(header.n_namesz);
    const size_t content_size = PaddedTo4(header.n_descsz);
    if (name_size > notes.size() || content_size > notes.size() - name_size) return {};
    const std::string_view name = notes.substr(0, header.n_namesz);
    const std::string_view content = notes.substr(name_size, header.n_descsz);
    if (header.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4) &&
        content.size() <= kMaxBuildIdBytes)
      return ToHex(content);
    notes.remove_prefix(name_size + content_size);
  }
  return {};
}

Result<ElfFile> ReadElfFile(const ByteSource& source) {
  Elf64_Ehdr header;
  FF_RETURN_IF_ERROR(source.ReadExact(std::as_writable_bytes(std::span(&header, 1)), 0));
  FF_RETURN_IF_ERROR(CheckHeader(header));
  ElfFile file{.machine = header.e_machine};
  FF_RETURN_IF_ERROR(ReadSegments(source, header, &file));
  FF_RETURN_IF_ERROR(ReadSections(source, header, &file));
  return file;
}

}  // namespace flamefleet::agent
