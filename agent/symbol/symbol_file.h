// SPDX-License-Identifier: Apache-2.0
// SymbolFile: names addresses of one mapped file; reads a name at its first use and keeps it.
//
// The table came from the parsing child and may be shared with equal files; names are read from
// this file alone, so that nobody names the functions of another container's file.
//
// Thread: one owner. Bounds: memory is what Bytes() says; the owner evicts. Names:
// kMaxNameBytesOfFile, and the owner's budget; what is beyond has none and is counted there.
// Errors: a file without symbols has no names; that is all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/host/mapped_file.h"
#include "agent/symbol/file_lines.h"
#include "agent/symbol/symbol_name.h"
#include "agent/symbol/symbol_request.h"

namespace flamefleet::agent {

constexpr size_t kMaxNameBytesOfFile = 8 << 20;  // 20,000 names of C++

class SymbolFile {
 public:
  struct Place {
    const SymbolName* name = nullptr;  // null: none is known; valid as long as the SymbolFile
    uint64_t function_offset = 0;      // where in the file its function begins, or the place itself
  };

  // A file of which nothing is known.
  explicit SymbolFile(std::shared_ptr<const MappedFile> file);
  // `files` are those that the parser was given, in this order; of `symbols` the table is empty.
  // `alternate`: the file of symbols.alternate; may be null.
  SymbolFile(std::vector<std::shared_ptr<const MappedFile>> files, ProgramSymbols symbols,
             std::shared_ptr<const SymbolTable> table, std::shared_ptr<const MappedFile> alternate);

  Place Find(uint64_t file_offset, NameBudget* budget);
  // Forgets the names when there is not much room for others any more. No pointer to them is valid
  // then.
  void EndWindow();

  // Asks for inlined functions and lines of the place with the next ResolveLines.
  void WantLines(uint64_t file_offset);
  bool wants_lines() const { return lines_.has_wanted(); }
  // Without a `budget` what is wanted goes out without them.
  void ResolveLines(ParserProcess* parser, std::chrono::nanoseconds budget, NameBudget* names,
                    LineCounts* counts);
  // As FileLines::Find.
  std::span<const FileLines::Frame> LinesOf(uint64_t file_offset) const;

  bool is_program() const { return !symbols_.segments.empty(); }
  const std::string& build_id() const { return symbols_.build_id; }
  // A shared table counts in parts.
  size_t Bytes() const;

 private:
  const SymbolName* NameOf(uint32_t number, NameBudget* budget);

  std::vector<std::shared_ptr<const MappedFile>> files_;
  ProgramSymbols symbols_;
  std::shared_ptr<const SymbolTable> table_;
  std::shared_ptr<const MappedFile> alternate_;
  FileLines lines_;
  std::unordered_map<uint32_t, SymbolName> names_;  // an unreadable one is empty
  size_t name_bytes_ = 0;
};

}  // namespace flamefleet::agent
