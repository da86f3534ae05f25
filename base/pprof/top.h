// SPDX-License-Identifier: Apache-2.0
// The hottest functions of a profile: the numbers of `go tool pprof -top`.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/pprof/profile.h"

namespace flamefleet::pprof {

struct TopFunction {
  std::string name;  // as ForEachFrameName says
  int64_t flat = 0;  // of samples whose innermost frame it is
  int64_t cum = 0;   // of samples in which it occurs at all, recursion counted once
};

struct Top {
  int64_t total = 0;                   // of all samples
  size_t function_count = 0;           // before the limit
  std::vector<TopFunction> functions;  // by flat, cum (both descending), name
};

Top HottestFunctions(const Profile& profile, size_t value_index, size_t limit);

}  // namespace flamefleet::pprof
