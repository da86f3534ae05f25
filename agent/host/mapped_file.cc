// SPDX-License-Identifier: Apache-2.0
#include "agent/host/mapped_file.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/clock.h"

namespace flamefleet::agent {
namespace {

constexpr size_t kMaxMountinfoBytes = 4 << 20;  // 20,000 mounts

// File systems whose server can keep a reader waiting for ever.
// Source: man 2 statfs; linux/magic.h has not all of them.
constexpr uint32_t kFuseMagic = 0x65735546;
constexpr uint32_t kCifsMagic = 0xFF534D42;
constexpr uint32_t kSmb2Magic = 0xFE534D42;
constexpr uint32_t kCephMagic = 0x00C36400;

bool MayBlockForEver(uint32_t magic) {
  return magic == kFuseMagic || magic == kCifsMagic || magic == kSmb2Magic || magic == kCephMagic ||
         magic == NFS_SUPER_MAGIC || magic == V9FS_MAGIC;
}

UniqueFd OpenPathByMapFiles(const std::string& proc_root, uint32_t pid, const MapsEntry& entry) {
  char range[64];
  std::snprintf(range, sizeof(range), "%u/map_files/%lx-%lx", pid, entry.start, entry.end);
  return UniqueFd(::open((proc_root + "/" + range).c_str(), O_PATH | O_CLOEXEC));
}

UniqueFd OpenPathBelow(int root, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof(how))));
}

UniqueFd OpenRoot(const std::string& proc_root, uint32_t pid) {
  const std::string root = proc_root + "/" + std::to_string(pid) + "/root";
  return UniqueFd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// The names of the same ones, and of more, in mountinfo.
bool IsNameOfServer(std::string_view type) {
  constexpr std::array<std::string_view, 9> kPrefixes = {"nfs",  "fuse", "cifs",   "smb",      "9p",
                                                         "ceph", "afs",  "lustre", "glusterfs"};
  return std::ranges::any_of(kPrefixes,
                             [type](std::string_view prefix) { return type.starts_with(prefix); });
}

// Whether a line of mountinfo mounts the file system 0:`minor` and is of such a type.
// Source: proc_pid_mountinfo(5)
bool MountsServer(std::string_view mountinfo, uint32_t minor) {
  const std::string device = " 0:" + std::to_string(minor) + " ";
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    const std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    // "36 35 0:98 / /mnt rw - nfs4 server:/ rw": names have no spaces, they are "\040" there.
    const size_t first = line.find(' ');
    const size_t second = line.find(' ', first + 1);
    const size_t type = line.find(" - ");
    if (first == std::string_view::npos || second == std::string_view::npos ||
        type == std::string_view::npos || !line.substr(second).starts_with(device))
      continue;
    return IsNameOfServer(line.substr(type + 3));
  }
  return false;
}

int64_t ModifiedNanos(const struct stat& info) {
  return info.st_mtim.tv_sec * kNanosPerSecond + info.st_mtim.tv_nsec;
}

// Opens for reading what `path_fd` names, if it is a file that can be read without waiting.
Result<MappedFile> OpenRegular(const UniqueFd& path_fd, const std::string& name) {
  struct stat info {};
  if (::fstat(path_fd.get(), &info) != 0) return ErrnoError(errno, "stat " + name);
  if (!S_ISREG(info.st_mode)) return FailedPreconditionError("open " + name + ": not a file");
  if (static_cast<uint64_t>(info.st_size) > kMaxMappedFileBytes)
    return ResourceExhaustedError("open " + name + ": larger than 4 GiB");
  struct statfs file_system {};
  if (::fstatfs(path_fd.get(), &file_system) != 0) return ErrnoError(errno, "statfs " + name);
  if (MayBlockForEver(static_cast<uint32_t>(file_system.f_type)))
    return FailedPreconditionError("open " + name + ": on a network or FUSE file system");
  const std::string reopen = "/proc/self/fd/" + std::to_string(path_fd.get());
  MappedFile file;
  file.fd.reset(::open(reopen.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.fd.ok()) return ErrnoError(errno, "open " + name);
  file.device = info.st_dev;
  file.inode = info.st_ino;
  file.size = static_cast<uint64_t>(info.st_size);
  file.owner = info.st_uid;
  file.modified_ns = ModifiedNanos(info);
  return file;
}

// False when somebody has written into the file since it was opened.
bool IsUnchanged(const MappedFile& file) {
  struct stat info {};
  return ::fstat(file.fd.get(), &info) == 0 && static_cast<uint64_t>(info.st_size) == file.size &&
         ModifiedNanos(info) == file.modified_ns;
}

}  // namespace

Result<MappedFile> OpenMappedFile(const std::string& proc_root, uint32_t pid,
                                  const MapsEntry& entry) {
  const std::string name = entry.path + " of process " + std::to_string(pid);
  if (entry.path.empty() || entry.path.front() != '/')
    return FailedPreconditionError("open " + name + ": not a file");
  UniqueFd path_fd = OpenPathByMapFiles(proc_root, pid, entry);
  if (!path_fd.ok() && !entry.deleted) {
    const UniqueFd root = OpenRoot(proc_root, pid);
    if (root.ok()) path_fd = OpenPathBelow(root.get(), entry.path);
  }
  if (!path_fd.ok()) return ErrnoError(errno, "open " + name);
  return OpenRegular(path_fd, name);
}

std::shared_ptr<const RootDirectory> RootDirectory::Open(const std::string& proc_root,
                                                         uint32_t pid) {
  UniqueFd fd = OpenRoot(proc_root, pid);
  return fd.ok() ? std::make_shared<const RootDirectory>(std::move(fd)) : nullptr;
}

Result<MappedFile> RootDirectory::OpenFile(const std::string& path) const {
  const UniqueFd path_fd = OpenPathBelow(fd_.get(), path);
  if (!path_fd.ok()) return ErrnoError(errno, "open " + path);
  return OpenRegular(path_fd, path);
}

std::shared_ptr<const RootDirectory> RootTable::Open(const std::string& proc_root, uint32_t pid) {
  const std::string directory = proc_root + "/" + std::to_string(pid);
  struct stat space {};
  struct stat root {};
  if (::stat((directory + "/ns/mnt").c_str(), &space) != 0 ||
      ::stat((directory + "/root").c_str(), &root) != 0)
    return nullptr;
  std::weak_ptr<const RootDirectory>& known = roots_[{space.st_ino, root.st_dev, root.st_ino}];
  std::shared_ptr<const RootDirectory> opened = known.lock();
  if (!opened) {
    opened = RootDirectory::Open(proc_root, pid);
    known = opened;
  }
  return opened;
}

void RootTable::Sweep() {
  std::erase_if(roots_, [](const auto& item) { return item.second.expired(); });
}

std::shared_ptr<const MappedFile> OpenVdso() {
  const unsigned long address = ::getauxval(AT_SYSINFO_EHDR);
  if (address == 0) return nullptr;
  const auto* const bytes = reinterpret_cast<const char*>(address);
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof(header));
  // Section headers are its last part.
  const size_t size = header.e_shoff + size_t{header.e_shnum} * header.e_shentsize;
  auto file = std::make_shared<MappedFile>();
  file->fd.reset(::memfd_create("vdso", MFD_CLOEXEC));
  if (!file->fd.ok() || ::write(file->fd.get(), bytes, size) != static_cast<ssize_t>(size))
    return nullptr;
  file->size = size;
  return file;
}

// To ask the file system itself, with fstat or fstatfs, is to ask its server.
bool FileTable::IsOnServer(const std::string& proc_root, uint32_t pid, const MapsEntry& entry) {
  if (entry.device_major != 0) return false;
  const auto [known, is_new] = on_server_.try_emplace(entry.device_minor, false);
  if (is_new) {
    const Result<std::string> mountinfo =
        ReadFile(proc_root + "/" + std::to_string(pid) + "/mountinfo", kMaxMountinfoBytes);
    known->second = mountinfo.ok() && MountsServer(*mountinfo, entry.device_minor);
  }
  return known->second;
}

std::shared_ptr<const MappedFile> FileTable::Open(const std::string& proc_root, uint32_t pid,
                                                  const MapsEntry& entry) {
  if (entry.inode == 0) return nullptr;
  const Key key(entry.device_major, entry.device_minor, entry.inode, entry.path);
  const auto [first, last] = files_.equal_range(key);
  for (auto known = first; known != last; ++known) {
    std::shared_ptr<const MappedFile> file = known->second.lock();
    // A deleted one is memory that a process writes all the time.
    if (file && (entry.deleted || IsUnchanged(*file))) return file;
  }
  if (files_.size() >= max_open_) Sweep();
  if (files_.size() >= max_open_) {
    ++failures_;
    return nullptr;
  }
  if (IsOnServer(proc_root, pid, entry)) {
    ++failures_;
    return nullptr;
  }
  Result<MappedFile> opened = OpenMappedFile(proc_root, pid, entry);
  if (!opened.ok()) {
    ++failures_;
    return nullptr;
  }
  auto file = std::make_shared<const MappedFile>(*std::move(opened));
  files_.emplace(key, file);
  return file;
}

void FileTable::Sweep() {
  std::erase_if(files_, [](const auto& item) { return item.second.expired(); });
  on_server_.clear();
}

}  // namespace flamefleet::agent
