// SPDX-License-Identifier: Apache-2.0
#include "store/options.h"

#include <gtest/gtest.h>

namespace flamefleet::store {
namespace {

TEST(IsLoopback, OnlyWhatThisMachineReaches) {
  for (const char* listen : {"127.0.0.1:4040", "[::1]:4040", "localhost:4040"}) {
    EXPECT_TRUE(IsLoopback(listen)) << listen;
  }
  for (const char* listen : {":4040", "0.0.0.0:4040", "[::]:4040", "10.0.0.127:4040"}) {
    EXPECT_FALSE(IsLoopback(listen)) << listen;
  }
}

TEST(DefaultQueryMemory, LeavesHalfOfTheLimitWhenTwoRun) {
  EXPECT_EQ(DefaultQueryMemory({}), 256 << 20);
  EXPECT_EQ(DefaultQueryMemory(uint64_t{4} << 30), 256 << 20);
  EXPECT_EQ(DefaultQueryMemory(512 << 20), 128 << 20);
  EXPECT_EQ(DefaultQueryMemory(1), 1 << 20);
}

}  // namespace
}  // namespace flamefleet::store
