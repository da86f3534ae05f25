// SPDX-License-Identifier: Apache-2.0
// CheckDay: reads all of one day's file and says what is wrong with it; changes nothing.
//
// Thread: any; also while a store writes to the file. Errors: the file cannot be read at all.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"

namespace flamefleet::store {

struct DayReport {
  size_t series = 0;
  size_t profiles = 0;
  size_t packed = 0;                  // of these
  std::vector<std::string> problems;  // none: the day is whole
};

// Checks SQLite's structure, the digest of each original, that each pack and all symbols can be
// read, that packs name only stacks that there are, and that each profile is in one place.
Result<DayReport> CheckDay(const std::string& path);

}  // namespace flamefleet::store
