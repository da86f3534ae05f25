// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "agent/symbol/elf_file.h"
#include "agent/symbol/symbol_table.h"
#include "base/fd.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  const UniqueFd fd(::memfd_create("elf", MFD_CLOEXEC));
  FF_CHECK(::write(fd.get(), data, size) == static_cast<ssize_t>(size));
  const Result<ElfFile> elf = ReadElfFile(fd.get());
  if (!elf.ok()) return 0;
  const Result<SymbolTable> table = SymbolTable::Read(fd.get(), *elf);
  if (!table.ok()) return 0;
  FF_CHECK(table->size() <= 2 * size);
  for (uint64_t offset = 0; offset < 1 << 16; offset += 997) {
    const std::optional<uint64_t> address = elf->AddressOfOffset(offset);
    const std::optional<uint32_t> name = table->Find(address.value_or(offset));
    if (name) table->ReadName(fd.get(), *name).IgnoreError();
  }
  return 0;
}
