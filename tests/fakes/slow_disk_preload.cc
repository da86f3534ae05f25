// SPDX-License-Identifier: Apache-2.0
// In LD_PRELOAD of a program: its SQLite files are on a slow disk, as by UseSlowDisk. The
// environment's FF_SLOW_DISK_MICROS says how slow.
#include <cstdlib>

#include "tests/fakes/slow_disk.h"

namespace {

__attribute__((constructor)) void Preload() {
  const char* const micros = std::getenv("FF_SLOW_DISK_MICROS");
  if (micros != nullptr) flamefleet::UseSlowDisk(std::chrono::microseconds(std::atoi(micros)));
}

}  // namespace
