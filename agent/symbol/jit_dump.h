// SPDX-License-Identifier: Apache-2.0
// JitDump: names of code that a process makes at run time, from the jit-PID.dump that it writes and
// maps (node --perf-prof, JVM agents, LLVM).
//
// The file is read by the parsing child, and only what was appended since the last time; the code
// that it holds beside the names is passed over. A later record wins over every earlier one that it
// overlaps. Another file, or one that has become shorter, is read from its start.
//
// Thread: one owner. Units: addresses of the process. Bounds: kMaxJitRecordsPerUpdate; those of
// MadeFunctions. Errors: of another form kInvalidArgument, now and for every further Update with
// that file.
// Source: tools/perf/Documentation/jitdump-specification.txt of the kernel
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

constexpr uint64_t kMaxJitRecordsPerRequest = 1 << 14;  // some 20 ms
constexpr uint64_t kMaxJitRecordsPerUpdate = 1 << 17;   // the next Update goes on

class JitDump {
 public:
  // Reads what is new in the file. The parser's errors.
  Status Update(const MappedFile& file, ParserProcess* parser);

  // Adds what the parser answered.
  Status Add(std::string_view answer);

  // The name at the address; "" when none is known. Valid until the next Update or Add.
  std::string_view Find(uint64_t address) const { return functions_.Find(address); }

  size_t size() const { return functions_.size(); }
  size_t Bytes() const { return functions_.Bytes(); }

 private:
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
  uint64_t offset_ = 0;        // in the file, of what was not read yet
  uint64_t last_records_ = 0;  // of the last answer
  bool is_refused_ = false;
  MadeFunctions functions_;
};

// ParseKind::kJitDump, in the child: the records of the file from an offset on, whole ones only.
Result<std::string> AnswerJitDump(std::span<const int> files, std::string_view arguments);

}  // namespace flamefleet::agent
