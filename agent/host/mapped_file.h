// SPDX-License-Identifier: Apache-2.0
// Opens the files that processes have mapped, without being fooled by the container they are in.
//
// The kernel's own link to the mapped inode (map_files) comes first: it is right even when the file
// was deleted or replaced. Else the path is resolved inside the process's root. Either way the file
// is looked at through O_PATH before it is opened: no FIFO is waited for, no device is touched, no
// symbolic link leads out.
//
// Thread: FileTable: one owner. MappedFile: any. Units: bytes.
// Bounds: at most FileTable's max_open descriptors; over it files are not opened, which is counted.
// Read with pread only: a mapped file that its owner truncates would kill us with SIGBUS.
// Source: openat2(2), proc_pid_map_files(5)
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "agent/host/maps.h"
#include "base/fd.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr uint64_t kMaxMappedFileBytes = uint64_t{4} << 30;

// Equal IDs are equal bytes, unless the file is being written.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  friend auto operator<=>(const FileId&, const FileId&) = default;
};

// One file, as long as someone holds it. The pinned inode cannot be reused for another file.
struct MappedFile {
  FileId id() const { return {device, inode, size, modified_ns}; }

  UniqueFd fd;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  uint32_t owner = 0;  // user
};

// kPermissionDenied, kNotFound (process or file is gone), kFailedPrecondition (not a regular file,
// a network or FUSE file system), kResourceExhausted (too large).
Result<MappedFile> OpenMappedFile(const std::string& proc_root, uint32_t pid,
                                  const MapsEntry& entry);

// A directory below which files are opened by name as a process sees them: its root. The name is
// resolved by the kernel inside that root, whatever links are on the way.
class RootDirectory {
 public:
  explicit RootDirectory(UniqueFd fd) : fd_(std::move(fd)) {}
  // Null when the process is gone or not ours to look at.
  static std::shared_ptr<const RootDirectory> Open(const std::string& proc_root, uint32_t pid);

  // Errors as OpenMappedFile.
  Result<MappedFile> OpenFile(const std::string& path) const;

 private:
  UniqueFd fd_;  // O_PATH
};

// Shares root directories between the processes of a container.
class RootTable {
 public:
  std::shared_ptr<const RootDirectory> Open(const std::string& proc_root, uint32_t pid);
  void Sweep();

 private:
  // Mount namespace, then device and inode of the directory.
  using Key = std::tuple<uint64_t, uint64_t, uint64_t>;
  std::map<Key, std::weak_ptr<const RootDirectory>> roots_;
};

// The vdso: the kernel maps the same one into every process, so this is a copy of our own. Null
// without one.
std::shared_ptr<const MappedFile> OpenVdso();

// Shares open files between the processes that map them.
class FileTable {
 public:
  explicit FileTable(size_t max_open) : max_open_(max_open) {}

  // The file behind the mapping, null when it cannot be opened (counted). One that was written into
  // since it was opened is another one: what was read of it no longer holds. One on a network or
  // FUSE file system is not even looked at: its server may be away.
  std::shared_ptr<const MappedFile> Open(const std::string& proc_root, uint32_t pid,
                                         const MapsEntry& entry);
  // Forgets files that nobody holds any more, and what is known of file systems: the kernel uses
  // their numbers again.
  void Sweep();

  uint64_t failures() const { return failures_; }
  size_t size() const { return files_.size(); }

 private:
  // Device, inode and path, as in maps. The path because snapshots of btrfs share device and
  // inodes.
  using Key = std::tuple<uint32_t, uint32_t, uint64_t, std::string>;

  bool IsOnServer(const std::string& proc_root, uint32_t pid, const MapsEntry& entry);

  const size_t max_open_;
  std::map<uint32_t, bool> on_server_;  // by minor number; those of no device have major 0
  // Several of one key: what was opened before somebody wrote into it.
  std::multimap<Key, std::weak_ptr<const MappedFile>> files_;
  uint64_t failures_ = 0;
};

}  // namespace flamefleet::agent
