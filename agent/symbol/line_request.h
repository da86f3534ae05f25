// SPDX-License-Identifier: Apache-2.0
// ParseKind::kLines: functions, files and lines of addresses, from DWARF.
//
// AnswerLines runs in the parsing child; the agent asks with RequestLines and gets what was
// checked.
//
// Thread: any. Bounds: kMaxLineAddresses of a request, `budget` of its time; who asks waits at most
// kLineGrace longer, whatever the file does. Errors: of Request, those of ParserProcess::Run; what
// the file lacks is no error but SourceLines::problem.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "agent/parse/parser_process.h"
#include "agent/symbol/source_lines.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr size_t kMaxLineAddresses = 4096;
constexpr size_t kMaxLineTextBytes = 8192;     // a folder and a name of kMaxDwarfTextBytes each
constexpr std::chrono::seconds kLineGrace{2};  // on a busy node the child waits for CPU time

// In the child. Files: the one with the DWARF, and what dwz moved out of it if it says so.
Result<std::string> AnswerLines(std::span<const int> files, std::string_view arguments);

// In the agent. `addresses` in their order, each once, as the file counts them.
Result<SourceLines> RequestLines(ParserProcess* parser, std::span<const int> files,
                                 std::span<const uint64_t> addresses,
                                 std::chrono::nanoseconds budget);

// Checked as if it came from the file itself.
Result<SourceLines> DecodeLines(std::string_view encoded, size_t address_count);

}  // namespace flamefleet::agent
