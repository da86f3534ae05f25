// SPDX-License-Identifier: Apache-2.0
// PerfMap: names of code that a process makes at run time, from the /tmp/perf-PID.map it writes.
//
// The file is read by the parsing child, and only what was appended since the last time; one that
// was written anew, as a JVM does with each `jcmd PID Compiler.perfmap`, from its start. Each line
// is "START SIZE NAME", numbers hexadecimal with or without 0x. A later line wins over every
// earlier one that it overlaps.
//
// Thread: one owner. Units: addresses of the process. Bounds: kMaxPerfMapReadBytes per Update, of a
// longer file its end; those of MadeFunctions. Errors: lines of another form are left out.
// Source: tools/perf/Documentation/jit-interface.txt of the kernel
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "agent/host/mapped_file.h"
#include "agent/parse/parser_process.h"
#include "agent/symbol/made_functions.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr uint64_t kMaxPerfMapReadBytes = 8 << 20;
constexpr uint64_t kMaxPerfMapChunkBytes = 2 << 20;  // per request
constexpr size_t kPerfMapTailBytes = 256;            // some lines

class PerfMap {
 public:
  // Reads what is new in the file. The parser's errors.
  Status Update(const MappedFile& file, ParserProcess* parser);

  // Adds what the parser answered; how many bytes of the file it is for.
  Result<uint64_t> Add(std::string_view answer);

  // The name at the address; "" when none is known. Valid until the next Update or Add.
  std::string_view Find(uint64_t address) const { return functions_.Find(address); }

  size_t size() const { return functions_.size(); }
  size_t Bytes() const { return functions_.Bytes(); }

 private:
  // Whether what was read is still in the file, so that the rest of it can be added.
  bool IsContinuedBy(const MappedFile& file) const;

  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  uint64_t offset_ = 0;  // in the file, of what was not read yet
  std::string tail_;     // what is right before it, kPerfMapTailBytes at most
  MadeFunctions functions_;
};

// ParseKind::kPerfMap, in the child: the lines of a part of the file.
Result<std::string> AnswerPerfMap(std::span<const int> files, std::string_view arguments);

}  // namespace flamefleet::agent
