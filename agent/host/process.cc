// SPDX-License-Identifier: Apache-2.0
#include "agent/host/process.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kMaxStatBytes = 4096;
constexpr size_t kMaxStatusBytes = 64 << 10;

// Field 22 of /proc/PID/stat: start time in ticks of 10 ms. The name in field 2 may hold anything,
// so fields are counted from its last ')'.
Result<uint64_t> ReadStartTicks(const std::string& directory) {
  FF_ASSIGN_OR_RETURN(const std::string stat, ReadFile(directory + "/stat", kMaxStatBytes));
  size_t at = stat.rfind(')');
  constexpr int kFieldsBetween = 20;  // from the one behind the name (3) to 22
  for (int i = 0; i < kFieldsBetween && at != std::string::npos; ++i)
    at = stat.find(' ', at + 1);
  uint64_t ticks = 0;
  if (at == std::string::npos ||
      std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), ticks).ec != std::errc())
    return DataLossError("parse " + directory + "/stat: no start time");
  return ticks;
}

constexpr uint64_t kNanosPerTick = 10'000'000;  // USER_HZ is 100 on every architecture

Status CheckStillTheSame(const std::string& directory, const ProcessId& id,
                         const std::string& comm) {
  FF_ASSIGN_OR_RETURN(const uint64_t ticks, ReadStartTicks(directory));
  if (ticks != id.start_boottime / kNanosPerTick)
    return NotFoundError("read " + directory + ": the PID belongs to another process by now");
  FF_ASSIGN_OR_RETURN(std::string now, ReadFile(directory + "/comm", kMaxStatBytes));
  if (!now.empty() && now.back() == '\n') now.pop_back();
  if (now != comm) return NotFoundError("read " + directory + ": it runs another program by now");
  return OkStatus();
}

// Other executable memory is made at run time, if only behind the name of a deleted file.
bool IsFileOrKernel(const MapsEntry& entry) {
  if (entry.path == "[vdso]" || entry.path == "[vsyscall]") return true;
  return entry.inode != 0 && !entry.deleted;
}

// The numbers that the process itself sees: of the last, innermost namespace.
void ReadIdentity(const std::string& directory, ProcessImage* image) {
  const std::string status =
      ReadFile(directory + "/status", kMaxStatusBytes).value_or(std::string());
  const auto line_of = [&status](const std::string& key) {
    const size_t at = status.find("\n" + key + ":\t");
    if (at == std::string::npos) return std::string_view();
    const size_t begin = at + key.size() + 3;
    return std::string_view(status).substr(begin, status.find('\n', begin) - begin);
  };
  const std::string_view pids = line_of("NStgid");
  const std::string_view innermost = pids.substr(pids.rfind('\t') + 1);  // npos + 1 is 0
  std::from_chars(innermost.data(), innermost.data() + innermost.size(), image->namespace_pid);
  std::string_view users = line_of("Uid");  // real, effective, ...
  users.remove_prefix(std::min(users.find('\t') + 1, users.size()));
  std::from_chars(users.data(), users.data() + users.size(), image->user);
}

// A thread of the process that still runs, 0 when there is none. A main thread that has ended
// before others is a zombie: its files under /proc say nothing of the memory that they share.
uint32_t RunningThread(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/task", error)) {
    if (::access((entry.path() / "exe").c_str(), F_OK) != 0) continue;
    const std::string name = entry.path().filename().string();
    uint32_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    return thread;
  }
  return 0;
}

// A process that is ending has given its memory back before it leaves /proc: then it has no such
// link.
Result<std::string> ExecutableName(const std::string& directory, const std::string& comm) {
  std::array<char, 4096> target;
  const ssize_t length = ::readlink((directory + "/exe").c_str(), target.data(), target.size());
  if (length < 0 && errno == ENOENT)
    return NotFoundError("read " + directory + ": its memory is gone, it is ending");
  if (length <= 0) return comm;
  std::string_view path(target.data(), static_cast<size_t>(length));
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
  return path.empty() ? comm : std::string(path);
}

}  // namespace

const ImageMapping* ProcessImage::Find(uint64_t address) const {
  auto next = std::upper_bound(
      mappings.begin(), mappings.end(), address,
      [](uint64_t value, const ImageMapping& mapping) { return value < mapping.start; });
  if (next == mappings.begin()) return nullptr;
  --next;
  return address < next->end ? &*next : nullptr;
}

size_t ProcessImage::Bytes() const {
  size_t bytes = sizeof(*this) + mappings.capacity() * sizeof(ImageMapping);
  for (const ImageMapping& mapping : mappings)
    bytes += mapping.path.capacity();
  return bytes;
}

Result<std::shared_ptr<const ProcessImage>> ReadProcessImage(const std::string& proc_root,
                                                             const ProcessId& id,
                                                             const std::string& comm,
                                                             FileTable* files, RootTable* roots) {
  std::string directory = proc_root + "/" + std::to_string(id.pid);
  FF_ASSIGN_OR_RETURN(std::string text, ReadFile(directory + "/maps", kMaxMapsBytes));
  uint32_t reader = id.pid;  // the thread by whose files the process is read
  if (text.empty()) {
    reader = RunningThread(directory);
    if (reader == 0) return NotFoundError("read " + directory + ": it is ending");
    directory = proc_root + "/" + std::to_string(reader);
    FF_ASSIGN_OR_RETURN(text, ReadFile(directory + "/maps", kMaxMapsBytes));
  }
  FF_ASSIGN_OR_RETURN(std::vector<MapsEntry> entries, ParseMaps(text));
  auto image = std::make_shared<ProcessImage>();
  image->id = id;
  image->root = roots->Open(proc_root, reader);
  image->mappings.reserve(entries.size());
  bool makes_code = false;
  size_t path_bytes = 0;
  for (MapsEntry& entry : entries) {
    makes_code = makes_code || !IsFileOrKernel(entry);
    std::shared_ptr<const MappedFile> file = files->Open(proc_root, reader, entry);
    path_bytes += entry.path.size();
    const bool is_cut = path_bytes > kMaxImagePathBytes;
    image->mappings.push_back({.start = entry.start,
                               .end = entry.end,
                               .offset = entry.offset,
                               .path = is_cut ? "[...]" : std::move(entry.path),
                               .file = std::move(file)});
  }
  if (makes_code) ReadIdentity(directory, image.get());
  // These last: then all of the above was of this process, and was there.
  FF_ASSIGN_OR_RETURN(image->executable, ExecutableName(directory, comm));
  FF_RETURN_IF_ERROR(CheckStillTheSame(proc_root + "/" + std::to_string(id.pid), id, comm));
  return std::shared_ptr<const ProcessImage>(std::move(image));
}

bool IsAlive(const std::string& proc_root, const ProcessId& id) {
  const Result<uint64_t> ticks = ReadStartTicks(proc_root + "/" + std::to_string(id.pid));
  return ticks.ok() && *ticks == id.start_boottime / kNanosPerTick;
}

ProcessTable::ProcessTable(std::string proc_root, size_t max_open_files, const Clock& clock)
    : proc_root_(std::move(proc_root)), clock_(clock), files_(max_open_files) {}

bool ProcessTable::MayRead(int64_t now_ns) {
  if (now_ns - period_start_ns_ >= kReadPeriodNanos) {
    period_start_ns_ = now_ns;
    spent_ns_ = 0;
  }
  return spent_ns_ < kMaxReadNanos;
}

void ProcessTable::Read(Process* process, int64_t now_ns) {
  process->read_ns = now_ns;
  const int64_t start_ns = clock_.MonotonicNanos();
  Result<std::shared_ptr<const ProcessImage>> image =
      ReadProcessImage(proc_root_, process->id, process->comm, &files_, &roots_);
  const int64_t end_ns = clock_.MonotonicNanos();
  spent_ns_ += end_ns - start_ns;
  if (!image.ok()) return;  // what was read before stays
  const size_t old_bytes = process->image ? process->image->Bytes() : 0;
  const size_t bytes = images_bytes_ - old_bytes + (*image)->Bytes();
  if (bytes > kMaxImagesBytes) {
    if (process->image) ++unreadable_;  // else Get counts it
    return;
  }
  images_bytes_ = bytes;
  process->image = *std::move(image);
  process->image_ns = end_ns;
  process->is_announced = false;
}

std::shared_ptr<Process> ProcessTable::Get(const ProcessId& id, const std::string& comm,
                                           int64_t now_ns) {
  if (const auto found = processes_.find(id); found != processes_.end()) {
    Process* const process = found->second.get();
    process->last_window = window_;
    process->comm = comm;  // it may have renamed itself since
    if (!process->image) Refresh(process, now_ns);
    return found->second;
  }
  if (processes_.size() >= kMaxProcesses) return nullptr;
  auto process = std::make_shared<Process>();
  process->id = id;
  process->comm = comm;
  process->last_window = window_;
  processes_.emplace(id, process);
  if (!MayRead(now_ns)) {
    process->read_ns = now_ns - kNanosPerSecond;  // due
    return process;
  }
  Read(process.get(), now_ns);
  if (!process->image) ++unreadable_;
  return process;
}

void ProcessTable::Refresh(Process* process, int64_t now_ns) {
  if (now_ns - process->read_ns >= kNanosPerSecond && MayRead(now_ns)) Read(process, now_ns);
}

void ProcessTable::End(const ProcessId& id, int64_t exec_ns) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  Process& process = *found->second;
  process.has_ended = true;
  if (exec_ns == 0 || !process.image || process.image_ns < exec_ns) return;
  images_bytes_ -= process.image->Bytes();
  process.image = nullptr;
  ++unreadable_;
}

void ProcessTable::EndWindow() {
  ++window_;
  std::erase_if(processes_, [this](const auto& item) {
    const Process& process = *item.second;
    if (!process.has_ended && process.last_window + kIdleWindows >= window_) return false;
    if (process.image) images_bytes_ -= process.image->Bytes();
    return true;
  });
  for (const auto& [id, process] : processes_)
    process->is_announced = false;
  files_.Sweep();
  roots_.Sweep();
}

}  // namespace flamefleet::agent
