// SPDX-License-Identifier: Apache-2.0
// Processes that were sampled: who they are and what they have mapped.
//
// A process is read when it is first sampled, while it probably still runs: names of programs that
// end before they are symbolized come from the files opened then.
//
// Thread: ProcessTable: one owner. ProcessImage: any, immutable. Units: nanoseconds.
// Bounds: kMaxProcesses, kMaxImagesBytes of their images; those that have ended or were not sampled
// for kIdleWindows go with the end of a window; a further one stays unread (its frames have no
// names). Paths of one image: kMaxImagePathBytes, the rest are "[...]". Reading takes kMaxReadNanos
// of each kReadPeriodNanos; then it waits for the next. Errors: none; what could not be read is
// counted.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/host/mapped_file.h"
#include "agent/host/maps.h"
#include "base/clock.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr size_t kMaxProcesses = 8192;
constexpr uint64_t kIdleWindows = 3;
constexpr size_t kMaxImagePathBytes = 256 << 10;   // Chrome's 300 mappings have 20 KiB
constexpr size_t kMaxImagesBytes = 32 << 20;       // 5 KiB is usual
constexpr int64_t kReadPeriodNanos = 250'000'000;  // the ring is read that often
constexpr int64_t kMaxReadNanos = 100'000'000;     // a process takes about 1 ms

// A PID is used again, a process may exec another program: all three together name one address
// space.
struct ProcessId {
  uint32_t pid = 0;
  uint64_t start_boottime = 0;  // nanoseconds since boot
  uint64_t exec_id = 0;

  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

struct ProcessIdHash {
  size_t operator()(const ProcessId& id) const {
    return static_cast<size_t>((id.start_boottime ^ (uint64_t{id.pid} << 32)) + id.exec_id);
  }
};

struct ImageMapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  std::string path;
  std::shared_ptr<const MappedFile> file;  // null: anonymous, or not to be opened
};

struct ProcessImage {
  ProcessId id;
  std::string executable;                     // base name of its program
  std::vector<ImageMapping> mappings;         // executable ones, in the order of addresses
  std::shared_ptr<const RootDirectory> root;  // null: gone, or no right
  // Set for processes that make code at run time: those with executable memory of no file.
  uint32_t namespace_pid = 0;  // as the process itself sees it
  uint32_t user = 0;

  // Null when no executable mapping holds the address.
  const ImageMapping* Find(uint64_t address) const;
  // Memory that it takes, about; files apart.
  size_t Bytes() const;
};

struct Process {
  ProcessId id;
  std::string comm;                           // as the kernel sampled it
  std::shared_ptr<const ProcessImage> image;  // null: not read (gone, or no right)
  bool is_announced = false;                  // the unwinder has got `image` in this window
  int64_t read_ns = 0;                        // monotonic, of the last attempt
  int64_t image_ns = 0;                       // monotonic, when `image` had been read
  uint64_t code_pages = 0;                    // ff_sample::code_pages at that time
  bool has_ended = false;
  uint64_t last_window = 0;
};

// What /proc says about the process that was sampled as `id` with the name `comm`. kNotFound when
// it has ended or when its PID or its program is another one by now.
Result<std::shared_ptr<const ProcessImage>> ReadProcessImage(const std::string& proc_root,
                                                             const ProcessId& id,
                                                             const std::string& comm,
                                                             FileTable* files, RootTable* roots);

// Whether the PID still belongs to the process. It may run another program by now.
bool IsAlive(const std::string& proc_root, const ProcessId& id);

class ProcessTable {
 public:
  // `clock` must outlive it.
  ProcessTable(std::string proc_root, size_t max_open_files, const Clock& clock = SystemClock());

  // The process, read at its first sight; where that failed, again at most once a second. Null when
  // the table is full. `now_ns` is monotonic, and may be a little old.
  std::shared_ptr<Process> Get(const ProcessId& id, const std::string& comm, int64_t now_ns);
  // Nothing more is sampled of it. `exec_ns`: since when it runs another program (monotonic; 0: it
  // has exited); what was read later is an image of that one.
  void End(const ProcessId& id, int64_t exec_ns = 0);
  // Reads it again, because it mapped something new; at most once a second per process.
  void Refresh(Process* process, int64_t now_ns);

  void EndWindow();

  // Processes that could not be read at their first sight, and images there was no room for.
  uint64_t unreadable() const { return unreadable_; }
  uint64_t file_failures() const { return files_.failures(); }
  size_t size() const { return processes_.size(); }

 private:
  void Read(Process* process, int64_t now_ns);
  // Whether there is time left in this period.
  bool MayRead(int64_t now_ns);

  const std::string proc_root_;
  const Clock& clock_;
  FileTable files_;
  RootTable roots_;
  std::unordered_map<ProcessId, std::shared_ptr<Process>, ProcessIdHash> processes_;
  size_t images_bytes_ = 0;
  int64_t period_start_ns_ = INT64_MIN / 2;
  int64_t spent_ns_ = 0;  // of the period
  uint64_t window_ = 0;
  uint64_t unreadable_ = 0;
};

}  // namespace flamefleet::agent
