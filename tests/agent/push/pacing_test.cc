// SPDX-License-Identifier: Apache-2.0
#include "agent/push/pacing.h"

#include <gtest/gtest.h>

namespace flamefleet::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CircuitTest : public ::testing::Test {
 protected:
  SteadyTime At(milliseconds time) const { return SteadyTime() + seconds(100) + time; }
  Circuit circuit_{milliseconds(100), milliseconds(1000), /*jitter=*/0};
};

TEST_F(CircuitTest, OneProbeAtATimeAfterTheBackOff) {
  EXPECT_EQ(circuit_.NextSend(5), SteadyTime::min());
  EXPECT_TRUE(circuit_.Fail(At(milliseconds(0)), At(milliseconds(10)), {}));
  EXPECT_EQ(circuit_.NextSend(0), At(milliseconds(110)));
  EXPECT_EQ(circuit_.NextSend(1), SteadyTime::max());
  EXPECT_FALSE(circuit_.Fail(At(milliseconds(110)), At(milliseconds(120)), {}));
  EXPECT_EQ(circuit_.NextSend(0), At(milliseconds(320)));
  EXPECT_TRUE(circuit_.Succeed());
  EXPECT_EQ(circuit_.NextSend(7), SteadyTime::min());
}

TEST_F(CircuitTest, PushesThatFailTogetherCountOnce) {
  circuit_.Fail(At(milliseconds(0)), At(milliseconds(10)), {});
  for (int i = 0; i < 7; ++i)
    circuit_.Fail(At(milliseconds(0)), At(milliseconds(11)), {});
  EXPECT_EQ(circuit_.NextSend(0), At(milliseconds(110)));
}

TEST_F(CircuitTest, TheServersWishWinsOverAShorterBackOff) {
  circuit_.Fail(At(milliseconds(0)), At(milliseconds(0)), seconds(7));
  EXPECT_EQ(circuit_.NextSend(0), At(seconds(7)));
}

TEST(TokenBucket, LetsNoMoreThroughThanItsRateAfterTheFirstSecond) {
  TokenBucket bucket(1000);
  SteadyTime now = SteadyTime() + seconds(100);
  const SteadyTime end = now + seconds(10);
  int64_t taken = 0;
  while (now < end) {
    if (bucket.NextTake() <= now) {
      bucket.Take(now, 300);
      taken += 300;
    }
    now += milliseconds(1);
  }
  EXPECT_GE(taken, 10'000);
  EXPECT_LE(taken, 11'300);
}

TEST(TokenBucket, WhatIsLargerThanASecondPassesAndIsWaitedFor) {
  TokenBucket bucket(1000);
  const SteadyTime now = SteadyTime() + seconds(100);
  ASSERT_LE(bucket.NextTake(), now);
  bucket.Take(now, 5000);
  EXPECT_EQ(bucket.NextTake(), now + seconds(4));
}

TEST(TokenBucket, NoRateIsNoLimit) {
  TokenBucket bucket;
  bucket.Take(SteadyTime(), INT64_MAX);
  EXPECT_EQ(bucket.NextTake(), SteadyTime::min());
}

}  // namespace
}  // namespace flamefleet::agent
