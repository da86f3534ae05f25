// SPDX-License-Identifier: Apache-2.0
// PerfMap: names of code that a process makes at run time, from the /tmp/perf-PID.map it writes.
//
// The file is read by the parsing child, and only what was appended since the last time. Each line
// is "START SIZE NAME", numbers hexadecimal with or without 0x. Code moves and memory is used
// again: a later line wins over every earlier one that it overlaps.
//
// Thread: one owner. Units: addresses of the process. Bounds: kMaxPerfMapReadBytes per Update, of a
// longer file its end; kMaxPerfMapFunctions and kMaxPerfMapNamesBytes, over which all earlier ones
// are forgotten; a name of kMaxPerfMapNameBytes. Errors: lines of another form are left out.
// Source: tools/perf/Documentation/jit-interface.txt of the kernel
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "agent/host/mapped_file.h"
#include "agent/parse/parser_process.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr uint64_t kMaxPerfMapReadBytes = 8 << 20;
constexpr uint64_t kMaxPerfMapChunkBytes = 2 << 20;  // per request
constexpr size_t kMaxPerfMapFunctions = 1 << 15;
constexpr size_t kMaxPerfMapNamesBytes = 3 << 20;  // of all of them
constexpr size_t kMaxPerfMapNameBytes = 512;

class PerfMap {
 public:
  // Reads what is new in the file. The parser's errors.
  Status Update(const MappedFile& file, ParserProcess* parser);

  // Adds what the parser answered; how many bytes of the file it is for.
  Result<uint64_t> Add(std::string_view answer);

  // The name at the address; "" when none is known. Valid until the next Update or Add.
  std::string_view Find(uint64_t address) const;

  size_t size() const { return functions_.size(); }
  size_t Bytes() const { return functions_.size() * kNodeBytes + names_.capacity(); }

 private:
  static constexpr size_t kNodeBytes = 80;
  struct Function {
    uint64_t end = 0;
    uint32_t name = 0;  // in names_
    uint32_t name_size = 0;
  };

  void Clear();
  void Insert(uint64_t start, uint64_t end, std::string_view name);

  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  uint64_t offset_ = 0;                     // in the file, of what was not read yet
  std::map<uint64_t, Function> functions_;  // by start; none overlaps another
  std::string names_;
};

// ParseKind::kPerfMap, in the child: the lines of a part of the file.
Result<std::string> AnswerPerfMap(std::span<const int> files, std::string_view arguments);

}  // namespace flamefleet::agent
