// SPDX-License-Identifier: Apache-2.0
// Symbolizer: names for addresses of user space and of the kernel.
//
// Tables are made by the parsing child at the first address of a file and kept, least recently used
// first out. Equal tables of several files (libc of many containers) are kept once: equal by what
// the parser answered, never by a build ID, which a container can give to any file. Kernel symbols
// are read at the first kernel frame and again when the set of modules changed.
//
// Thread: one owner. Bounds: tables of `max_bytes` after EndWindow, kMaxSymbolFiles of them, each
// for kIdleFileWindows after its last use, and kMaxNewNameBytes of names and lines in a window;
// once files that could not be parsed have taken kMaxFailingNanos of a window, further new ones
// wait for the next. A file whose parser dies or is late is tried kMaxFileStrikes times, with
// growing distance. Errors: none; what has no name gets "file+0xoffset" (the offset of its function
// where that is known, else its own), "[anonymous]", "[unknown]" or "[kernel]".
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/host/process.h"
#include "agent/parse/parser_process.h"
#include "agent/symbol/debug_files.h"
#include "agent/symbol/jit_dump.h"
#include "agent/symbol/kernel_symbols.h"
#include "agent/symbol/perf_map.h"
#include "agent/symbol/symbol_file.h"

namespace flamefleet::agent {

constexpr size_t kMaxSymbolFiles = 1024;
constexpr uint64_t kIdleFileWindows = 30;  // of 10 s; until then a file holds its file system busy
constexpr size_t kMaxNewNameBytes = 16 << 20;
constexpr int kMaxFileStrikes = 3;
constexpr int64_t kMaxFailingNanos = 5'000'000'000;
constexpr std::chrono::milliseconds kMaxLineTime{1000};       // of a window
constexpr std::chrono::milliseconds kMaxLineTimeOfFile{500};  // of that
// Of all processes; those that were not asked for go, else the names of one that grows are left out
// for kRefusedMadeCodeWindows, counted.
constexpr size_t kMaxMadeCodeBytes = 16 << 20;
constexpr uint64_t kRefusedMadeCodeWindows = 30;

class Symbolizer {
 public:
  Symbolizer(std::string proc_root, size_t max_bytes,
             std::shared_ptr<ParserProcess> parser = ParserProcess::Installed());

  // The name of the function at an address inside `mapping` of `image`. Valid until EndWindow or
  // the next call that names no function of a file.
  const SymbolName& UserName(const ProcessImage& image, const ImageMapping& mapping,
                             uint64_t address);
  const SymbolName& KernelName(uint64_t address);

  // The function at an address and those that are inlined there, the innermost first; at least one.
  // Valid as UserName's.
  struct Frame {
    const SymbolName* name = nullptr;
    std::string_view file;  // of the source; "": unknown
    uint32_t line = 0;      // 0: unknown
  };
  std::span<const Frame> UserFrames(const ProcessImage& image, const ImageMapping& mapping,
                                    uint64_t address);
  // UserFrames knows inlined functions and lines of what was wanted when ResolveLines was called
  // last, and of all before. It takes kMaxLineTime and, when a file makes it late, kLineGrace; what
  // it has no time for has the name of its symbol alone.
  void WantLines(const ProcessImage& image, const ImageMapping& mapping, uint64_t address);
  void ResolveLines();
  void SetLines(bool wanted) { lines_wanted_ = wanted; }
  const LineCounts& line_counts() const { return line_counts_; }

  std::string BuildId(const ProcessImage& image, const ImageMapping& mapping);
  const std::string& KernelBuildId();

  // Whether files that were not read yet are; without it their functions have no name, and no
  // further inlined functions and lines are looked up.
  void SetReadsNewFiles(bool reads) { reads_new_files_ = reads; }

  // Asked for files without a debug file here, and again in each window until it knows them.
  void SetDebugFileFinder(DebugFileFinder finder) { find_debug_file_ = std::move(finder); }

  void SetMaxBytes(size_t max_bytes) { max_bytes_ = max_bytes; }

  // Evicts down to the limit; an idle parser ends.
  void EndWindow();

  size_t Bytes() const { return FileBytes() + MadeCodeBytes(); }
  uint64_t unnamed_addresses() const { return unnamed_; }
  // Look-ups of functions that have a name for which there was no room.
  uint64_t names_refused() const { return names_.refused(); }
  size_t file_count() const { return files_.size(); }

 private:
  using Digest = std::array<uint8_t, 32>;  // SHA-256
  struct Cached {
    std::unique_ptr<SymbolFile> file;
    uint64_t last_window = 0;
    int strikes = 0;
    uint64_t retry_window = 0;  // not 0: opened anew in it
    std::string wanted;         // build ID of a debug file that would help
  };

  // What a process says of the code it made.
  struct MadeCode {
    PerfMap map;
    JitDump dump;
    uint64_t last_window = 0;   // in which they were read, or looked for in vain
    uint64_t retry_window = 0;  // until then there is no room for them

    std::string_view Find(uint64_t address) const {
      const std::string_view name = dump.Find(address);
      return name.empty() ? map.Find(address) : name;
    }
    size_t Bytes() const { return sizeof(*this) + map.Bytes() + dump.Bytes(); }
  };

  using Files = std::vector<std::shared_ptr<const MappedFile>>;
  struct Parsed {
    Files files;
    ProgramSymbols symbols;
    std::string encoded;
  };

  // Of symbols.alternate; null when it is nowhere.
  std::shared_ptr<const MappedFile> FindAlternate(const ProcessImage& image,
                                                  const AlternateLink& link);
  const std::shared_ptr<const RootDirectory>& HostRoot();
  SymbolFile* FileOf(const ProcessImage& image, const ImageMapping& mapping);
  // Null when the file cannot be parsed now, for a reason that is not the file's. `may_retry`
  // becomes true when another time might give more; `wanted` is set.
  std::unique_ptr<SymbolFile> Open(const ProcessImage& image, const std::string& path,
                                   const std::shared_ptr<const MappedFile>& file, bool* may_retry,
                                   std::string* wanted);
  void Load(const ProcessImage& image, const std::string& path,
            const std::shared_ptr<const MappedFile>& file, Cached* cached);
  Result<Parsed> Parse(Files files);
  std::unique_ptr<SymbolFile> Make(const ProcessImage& image, Parsed parsed);
  // Those that exist; only the parser can tell which belongs to the program.
  Files FindDebugFiles(const ProcessImage& image, const std::string& path,
                       const ProgramSymbols& symbols);
  // Read once in a window; empty when it says nothing.
  const MadeCode& MadeCodeOf(const ProcessImage& image);
  void ReadMadeCode(const ProcessImage& image, MadeCode* code);
  // For what `code` has grown by; if there is none, it is emptied.
  void MakeRoomForMadeCode(MadeCode* code);
  size_t FileBytes() const;
  size_t MadeCodeBytes() const;
  std::shared_ptr<const SymbolTable> Share(SymbolTable table, std::string_view encoded);
  void RefreshKernel();
  const SymbolName& Unnamed(std::string name);

  const std::string proc_root_;
  size_t max_bytes_;
  const std::shared_ptr<ParserProcess> parser_;
  DebugFileFinder find_debug_file_;
  bool reads_new_files_ = true;
  int64_t failing_ns_ = 0;  // spent in this window on files that could not be parsed
  NameBudget names_{kMaxNewNameBytes};
  std::map<FileId, Cached> files_;
  std::map<Digest, std::weak_ptr<const SymbolTable>> tables_;  // by what was answered
  const std::shared_ptr<const MappedFile> vdso_;
  std::shared_ptr<const RootDirectory> host_root_;  // opened with the first file without symbols
  std::unordered_map<ProcessId, MadeCode, ProcessIdHash> made_code_;
  KernelSymbols kernel_;
  std::string kernel_build_id_;
  std::string modules_;         // names of the modules as of kernel_
  uint64_t kernel_window_ = 0;  // when modules_ was last looked at
  bool kernel_read_ = false;
  uint64_t window_ = 1;
  uint64_t unnamed_ = 0;
  bool lines_wanted_ = true;
  LineCounts line_counts_{};
  std::vector<Frame> frames_;
  SymbolName last_;
};

}  // namespace flamefleet::agent
