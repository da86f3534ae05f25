// SPDX-License-Identifier: Apache-2.0
// ReadPackedSection: the content of a compressed section (SHF_COMPRESSED), in memory.
//
// Runs in the parsing child. Errors: kResourceExhausted when it is over `limit` bytes unpacked,
// kInvalidArgument for a compression that is not zlib or is damaged. Source: man 5 elf
#pragma once

#include <cstdint>
#include <string>

#include "agent/symbol/byte_source.h"
#include "agent/symbol/elf_file.h"
#include "base/status.h"

namespace flamefleet::agent {

Result<std::string> ReadPackedSection(const ByteSource& source, const ElfFile::Section& section,
                                      uint64_t limit);

}  // namespace flamefleet::agent
