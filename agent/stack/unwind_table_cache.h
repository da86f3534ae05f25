// SPDX-License-Identifier: Apache-2.0
// UnwindTableCache: the unwind tables that are in the kernel, one per different content.
//
// Tables are shared by content (SHA-256), not by build ID: a container can give its file any build
// ID, and a table of its making must not unwind another container's stacks.
//
// Thread: one owner. Units: bytes of kernel memory, monotonic nanoseconds. Bounds: `max_bytes`; for
// a further table the one goes that was not touched for longest, if that is kIdleTableNanos; else
// the further file has none for that long. kMaxUnwindFiles are known, each for kIdleFileNanos after
// its last use. Files whose parser dies or is late are tried kMaxUnwindStrikes times, with growing
// distance; once those have taken kMaxFailingTableNanos of kIdleTableNanos, further new files wait
// for the next. Errors: none; a file without a usable table is counted with the reason: its code is
// unwound by frame pointers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "agent/host/process.h"
#include "agent/parse/parser_process.h"
#include "agent/sample/unwind_maps.h"
#include "agent/stack/unwind_table.h"
#include "agent/symbol/elf_file.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr int64_t kIdleTableNanos = 60'000'000'000;
constexpr int64_t kIdleFileNanos = 60 * kIdleTableNanos;
constexpr size_t kMaxUnwindFiles = 4096;
constexpr int kMaxUnwindStrikes = 3;
constexpr int64_t kMaxFailingTableNanos = 5'000'000'000;

struct UnwindTableCounts {
  uint64_t built = 0;
  uint64_t absent = 0;     // files without rules
  uint64_t damaged = 0;    // files that could not be read or understood
  uint64_t too_large = 0;  // files that pass a bound
  uint64_t no_room = 0;    // files without a table because all others are in use
  uint64_t evicted = 0;    // tables that had to make room while a process that maps them waits
};

class UnwindTableCache {
 public:
  UnwindTableCache(UnwindMaps maps, size_t max_bytes, std::shared_ptr<ParserProcess> parser);

  // The mapping for the kernel, its table built if need be. `retry_ns` becomes the time from which
  // on the same call may have a table that it has not now, if that is earlier (0: never).
  ff_mapping Resolve(const ImageMapping& mapping, int64_t now_ns, int64_t* retry_ns = nullptr);

  // The table is used at this time. False when it has gone.
  bool Touch(uint32_t table, int64_t now_ns);
  // Removes what no process has mapped (`in_use`) and was not touched for kIdleTableNanos.
  void Sweep(const std::unordered_set<uint32_t>& in_use, int64_t now_ns);

  size_t Bytes() const { return bytes_; }
  size_t size() const { return tables_.size(); }
  size_t file_count() const { return files_.size(); }
  const UnwindTableCounts& counts() const { return counts_; }

 private:
  using Digest = std::array<uint8_t, 32>;
  struct File {
    ElfFile elf;
    uint32_t table = 0;    // 0: it has none
    int64_t retry_ns = 0;  // not 0: its table could not be built; tried again after this time
    int strikes = 0;       // failures that may not be the file's fault
    int64_t touched_ns = 0;
  };
  struct Table {
    Digest digest{};
    size_t bytes = 0;
    int64_t touched_ns = 0;
  };

  // Fills all but touched_ns of `file`.
  void Build(int fd, int64_t now_ns, File* file);
  // Whether files that failed have left time for others.
  bool MayBuild(int64_t now_ns);
  void DropOldestFile();
  Result<uint32_t> TableOf(int fd, const ElfFile& elf, int64_t now_ns);
  // The parser reads from the file itself, tens of megabytes: the digest is that of the table.
  Result<uint32_t> TableOfGo(int fd, const ElfFile& elf, int64_t now_ns);
  Result<uint32_t> Add(const UnwindTable& table, const Digest& digest, int64_t now_ns);
  // Whether there is room for that many bytes now, the oldest tables having gone if need be.
  bool MakeRoom(size_t bytes, int64_t now_ns);
  void CountFailure(const Status& status);
  void Remove(uint32_t table);

  const UnwindMaps maps_;
  const size_t max_bytes_;
  const std::shared_ptr<ParserProcess> parser_;
  const std::shared_ptr<const MappedFile> vdso_;
  std::map<FileId, File> files_;
  std::unordered_map<uint32_t, Table> tables_;  // by number
  std::map<Digest, uint32_t> numbers_;
  uint32_t last_number_ = 0;  // never used again
  size_t bytes_ = 0;
  int64_t failing_since_ns_ = INT64_MIN / 2;  // when the period of failing_ns_ began
  int64_t failing_ns_ = 0;
  UnwindTableCounts counts_;
};

}  // namespace flamefleet::agent
