// SPDX-License-Identifier: Apache-2.0
// ParseKind::kUnwindInfo and kUnwindTable: how to unwind the code of a program.
//
// The Answer functions run in the parsing child; the agent asks and gets what was checked.
//
// Thread: any. Bounds: elf_file.h, unwind_table.h, kMaxUnwindSectionBytes. Errors: of the Request
// functions those of ParserProcess::Run; kNotFound: the program has no rules.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "agent/parse/parser_process.h"
#include "agent/stack/unwind_table.h"
#include "agent/symbol/elf_file.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr size_t kMaxUnwindSectionBytes = 16 << 20;  // librustc_driver: 6 MB

Result<std::string> AnswerUnwindInfo(std::span<const int> files, std::string_view arguments);
Result<std::string> AnswerUnwindTable(std::span<const int> files, std::string_view arguments);

// Segments, .eh_frame, .debug_frame and the sections of Go, if they count; the rest of the ElfFile
// is not filled.
Result<ElfFile> RequestUnwindInfo(ParserProcess* parser, int fd);
// By those sections of `elf`.
Result<UnwindTable> RequestUnwindTable(ParserProcess* parser, int fd, const ElfFile& elf);

}  // namespace flamefleet::agent
