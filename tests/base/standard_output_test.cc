// SPDX-License-Identifier: Apache-2.0
#include "base/standard_output.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace flamefleet {
namespace {

// In a process of its own, whose output goes to `path`.
[[noreturn]] void PrintTo(const char* path, size_t bytes) {
  if (std::freopen(path, "w", stdout) == nullptr) std::_Exit(2);
  std::fputs(std::string(bytes, 'x').c_str(), stdout);
  const Status written = FlushStandardOutput();
  std::fprintf(stderr, "%s", written.ok() ? "all is there" : ErrorMessage(written).c_str());
  std::_Exit(0);
}

TEST(StandardOutput, WhatItDidNotTakeIsAnError) {
  constexpr size_t kMoreThanIsHeldBack = 1 << 20;
  for (const size_t bytes : {size_t{1}, kMoreThanIsHeldBack}) {
    EXPECT_EXIT(PrintTo("/dev/full", bytes), testing::ExitedWithCode(0), "write standard output: ");
    EXPECT_EXIT(PrintTo("/dev/null", bytes), testing::ExitedWithCode(0), "all is there");
  }
}

}  // namespace
}  // namespace flamefleet
