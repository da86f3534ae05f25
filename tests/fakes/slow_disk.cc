// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/slow_disk.h"

#include <sqlite3.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <thread>

namespace flamefleet {
namespace {

std::chrono::microseconds pause;
std::atomic<bool> stalls = false;
std::atomic<int> stalled = 0;
sqlite3_vfs* real_disk = nullptr;
int (*real_write)(sqlite3_file*, const void*, int, sqlite3_int64) = nullptr;
int (*real_sync)(sqlite3_file*, int) = nullptr;

void Wait() {
  std::this_thread::sleep_for(pause);
  ++stalled;
  while (stalls)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  --stalled;
}

int Write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  const int half = size / 2;
  if (const int code = real_write(file, data, half, offset); code != SQLITE_OK) return code;
  Wait();
  return real_write(file, static_cast<const char*>(data) + half, size - half, offset + half);
}

int Sync(sqlite3_file* file, int flags) {
  Wait();
  return real_sync(file, flags);
}

// The methods of a file of the real disk but for two; it has several kinds of
// files.
const sqlite3_io_methods* Slow(const sqlite3_io_methods* methods) {
  static std::map<const sqlite3_io_methods*, sqlite3_io_methods> known;
  const auto [entry, is_new] = known.try_emplace(methods, *methods);
  if (is_new) {
    real_write = methods->xWrite;
    real_sync = methods->xSync;
    entry->second.xWrite = &Write;
    entry->second.xSync = &Sync;
  }
  return &entry->second;
}

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  const int code = real_disk->xOpen(real_disk, name, file, flags, out_flags);
  if (file->pMethods != nullptr) file->pMethods = Slow(file->pMethods);
  return code;
}

}  // namespace

void UseSlowDisk(std::chrono::microseconds delay) {
  static sqlite3_vfs slow_disk;
  pause = delay;
  if (real_disk != nullptr) return;
  real_disk = sqlite3_vfs_find(nullptr);
  slow_disk = *real_disk;
  slow_disk.zName = "slow";
  slow_disk.pNext = nullptr;
  slow_disk.xOpen = &Open;
  if (sqlite3_vfs_register(&slow_disk, /*makeDflt=*/1) != SQLITE_OK) std::abort();
}

void StallDisk(bool stall) {
  stalls = stall;
}

int StalledWrites() {
  return stalls ? stalled.load() : 0;
}

}  // namespace flamefleet
