// SPDX-License-Identifier: Apache-2.0
#include "tests/agent/stack/oracle_file.h"

#include <fcntl.h>

#include <algorithm>
#include <string_view>

namespace flamefleet::testing {

OracleFile::OracleFile(const std::string& path) {
  FF_CHECK(elf_version(EV_CURRENT) != EV_NONE);
  Result<UniqueFd> fd = OpenFile(path, O_RDONLY);
  FF_CHECK(fd.ok());
  fd_ = *std::move(fd);
  elf_ = elf_begin(fd_.get(), ELF_C_READ_MMAP, nullptr);
  size_t names = 0;
  FF_CHECK(elf_ != nullptr && elf_getshdrstrndx(elf_, &names) == 0);
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
    GElf_Shdr header;
    FF_CHECK(gelf_getshdr(section, &header) != nullptr);
    if ((header.sh_flags & SHF_EXECINSTR) != 0) {
      code_start_ = std::min(code_start_, header.sh_addr);
      code_end_ = std::max(code_end_, header.sh_addr + header.sh_size);
    }
    if (std::string_view(elf_strptr(elf_, names, header.sh_name)) != ".eh_frame") continue;
    const Elf_Data* const data = elf_rawdata(section, nullptr);
    FF_CHECK(data != nullptr);
    eh_frame_ = {static_cast<const std::byte*>(data->d_buf), data->d_size};
    eh_frame_address_ = header.sh_addr;
  }
}

OracleFile::~OracleFile() {
  elf_end(elf_);
}

}  // namespace flamefleet::testing
