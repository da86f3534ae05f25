// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "base/fd.h"

namespace flamefleet::agent {
namespace {

template <typename T>
Status ReadArray(int fd, uint64_t offset, std::vector<T>* items) {
  return PreadExact(fd, std::as_writable_bytes(std::span(*items)), offset);
}

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

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<uint8_t>(c) >> 4];
    text += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return text;
}

size_t PaddedTo4(uint64_t size) {
  return static_cast<size_t>((size + 3) & ~uint64_t{3});
}

Status ReadSegments(int fd, const Elf64_Ehdr& header, ElfFile* file) {
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  FF_RETURN_IF_ERROR(ReadArray(fd, header.e_phoff, &segments));
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD) {
      file->segments.push_back({.offset = segment.p_offset,
                                .size = segment.p_filesz,
                                .address = segment.p_vaddr,
                                .executable = (segment.p_flags & PF_X) != 0});
    } else if (segment.p_type == PT_NOTE && file->build_id.empty() &&
               segment.p_filesz <= kMaxElfNoteBytes) {
      std::vector<char> notes(segment.p_filesz);
      FF_RETURN_IF_ERROR(ReadArray(fd, segment.p_offset, &notes));
      file->build_id = BuildIdOfNotes({notes.data(), notes.size()});
    }
  }
  return OkStatus();
}

// The names of sections, one after the other; those beyond the bound are left out.
Result<std::string> ReadSectionNames(int fd, const Elf64_Ehdr& header,
                                     const std::vector<Elf64_Shdr>& sections) {
  if (header.e_shstrndx >= sections.size()) return std::string();
  const Elf64_Shdr& section = sections[header.e_shstrndx];
  std::string names(std::min<uint64_t>(section.sh_size, kMaxSectionNamesBytes), '\0');
  FF_RETURN_IF_ERROR(PreadExact(fd, std::as_writable_bytes(std::span(names)), section.sh_offset));
  return names;
}

Status FindEhFrame(int fd, const Elf64_Ehdr& header, const std::vector<Elf64_Shdr>& sections,
                   ElfFile* file) {
  // With its end: no longer name that begins like it.
  constexpr std::string_view kName(".eh_frame", sizeof(".eh_frame"));
  FF_ASSIGN_OR_RETURN(const std::string names, ReadSectionNames(fd, header, sections));
  for (const Elf64_Shdr& section : sections) {
    const bool has_content =
        section.sh_type == SHT_PROGBITS || section.sh_type == SHT_X86_64_UNWIND;
    if (!has_content || (section.sh_flags & SHF_ALLOC) == 0 || section.sh_name >= names.size() ||
        names.compare(section.sh_name, kName.size(), kName) != 0)
      continue;
    file->eh_frame = {
        .offset = section.sh_offset, .size = section.sh_size, .address = section.sh_addr};
  }
  return OkStatus();
}

Status ReadSections(int fd, const Elf64_Ehdr& header, ElfFile* file) {
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  FF_RETURN_IF_ERROR(ReadArray(fd, header.e_shoff, &sections));
  const Elf64_Shdr* symbols = nullptr;
  for (const Elf64_Shdr& section : sections) {
    if ((section.sh_flags & SHF_EXECINSTR) != 0 && section.sh_size > 0)
      file->code.push_back({section.sh_addr, section.sh_addr + section.sh_size});
    const bool better =
        section.sh_type == SHT_SYMTAB || (section.sh_type == SHT_DYNSYM && symbols == nullptr);
    // A separated debug file leaves the section without content (SHT_NOBITS): not matched here.
    if (better && section.sh_entsize == sizeof(Elf64_Sym) && section.sh_link < sections.size())
      symbols = &section;
  }
  std::ranges::sort(file->code, {}, &ElfFile::AddressRange::start);
  if (symbols != nullptr) {
    const Elf64_Shdr& strings = sections[symbols->sh_link];
    file->symbols = {.offset = symbols->sh_offset,
                     .count = symbols->sh_size / sizeof(Elf64_Sym),
                     .strings_offset = strings.sh_offset,
                     .strings_size = strings.sh_size};
  }
  return FindEhFrame(fd, header, sections, file);
}

}  // namespace

std::optional<uint64_t> ElfFile::AddressOfOffset(uint64_t offset) const {
  for (const Segment& segment : segments) {
    if (offset >= segment.offset && offset - segment.offset < segment.size)
      return segment.address + (offset - segment.offset);
  }
  return std::nullopt;
}

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

Result<ElfFile> ReadElfFile(int fd) {
  Elf64_Ehdr header;
  FF_RETURN_IF_ERROR(PreadExact(fd, std::as_writable_bytes(std::span(&header, 1)), 0));
  FF_RETURN_IF_ERROR(CheckHeader(header));
  ElfFile file;
  FF_RETURN_IF_ERROR(ReadSegments(fd, header, &file));
  FF_RETURN_IF_ERROR(ReadSections(fd, header, &file));
  return file;
}

}  // namespace flamefleet::agent
