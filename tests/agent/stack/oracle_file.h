// SPDX-License-Identifier: Apache-2.0
// An ELF file seen by libelf and libdw: what our own readers are compared with.
#pragma once

#include <elfutils/libdw.h>
#include <gelf.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/fd.h"

namespace flamefleet::testing {

class OracleFile {
 public:
  explicit OracleFile(const std::string& path);
  ~OracleFile();
  OracleFile(const OracleFile&) = delete;
  OracleFile& operator=(const OracleFile&) = delete;

  Elf* elf() const { return elf_; }
  std::span<const std::byte> eh_frame() const { return eh_frame_; }
  uint64_t eh_frame_address() const { return eh_frame_address_; }
  // Of the executable sections.
  uint64_t code_start() const { return code_start_; }
  uint64_t code_end() const { return code_end_; }

 private:
  UniqueFd fd_;
  Elf* elf_ = nullptr;
  std::span<const std::byte> eh_frame_;
  uint64_t eh_frame_address_ = 0;
  uint64_t code_start_ = UINT64_MAX;
  uint64_t code_end_ = 0;
};

}  // namespace flamefleet::testing
