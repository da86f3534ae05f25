// SPDX-License-Identifier: Apache-2.0
#include "base/next_time.h"

#include <gtest/gtest.h>

namespace flamefleet {
namespace {

constexpr int64_t kNow = 1'764'435'600 * kNanosPerSecond;

TEST(NextTime, IsThatOfTheClockWhichAlsoMayBeSetBack) {
  EXPECT_EQ(NextTime(kNow, 0), kNow);
  EXPECT_EQ(NextTime(kNow, kNow - 1), kNow);
  EXPECT_EQ(NextTime(kNow, kNow + 7'200 * kNanosPerSecond), kNow);  // it was two hours ahead
}

TEST(NextTime, IsANewOneWhereTheClockStandsStill) {
  int64_t last_ns = kNow + kNanosPerMilli;  // and after a small step back
  for (int i = 0; i < 1'000; ++i) {
    const int64_t next_ns = NextTime(kNow, last_ns);
    ASSERT_GT(next_ns, last_ns);
    last_ns = next_ns;
  }
}

}  // namespace
}  // namespace flamefleet
