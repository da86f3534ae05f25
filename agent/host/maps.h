// SPDX-License-Identifier: Apache-2.0
// The executable mappings of a process, from the text of /proc/PID/maps.
//
// Thread: any. Units: bytes. Bounds: at most kMaxMappings entries, the rest is left out; the last
// kMappingsForFiles are for files: a program that makes code may have thousands of mappings below
// its libraries. Errors: kInvalidArgument names the line that is not one of maps.
// Source: man 5 proc_pid_maps
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace flamefleet::agent {

constexpr size_t kMaxMappings = 4096;  // executable ones; Chrome has some 300
constexpr size_t kMappingsForFiles = 1024;
constexpr size_t kMaxMapsBytes = 16 << 20;  // of text; 65530 mappings (the kernel's default limit)
                                            // with long names fit

struct MapsEntry {
  uint64_t start = 0;
  uint64_t end = 0;     // first address behind it
  uint64_t offset = 0;  // in the file
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;    // 0: not a file
  std::string path;      // as the process sees it; "[vdso]"; "" for anonymous memory
  bool deleted = false;  // the path names another file by now, or none
};

// In the order of addresses.
Result<std::vector<MapsEntry>> ParseMaps(std::string_view text);

}  // namespace flamefleet::agent
