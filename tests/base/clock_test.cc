// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>

namespace flamefleet {
namespace {

TEST(Clock, Rfc3339RoundTripsToTheMillisecond) {
  EXPECT_EQ(FormatRfc3339(1'764'435'600'123'456'789), "2025-11-29T17:00:00.123Z");
  EXPECT_EQ(*ParseRfc3339("2025-11-29T17:00:00.123Z"), 1'764'435'600'123'000'000);
  EXPECT_EQ(*ParseRfc3339("2025-11-29T18:00:00+01:00"), 1'764'435'600 * kNanosPerSecond);
  EXPECT_FALSE(ParseRfc3339("yesterday").ok());
}

TEST(Clock, DurationsReadAsInGo) {
  EXPECT_EQ(*ParseDuration("1h30m"), 5400 * kNanosPerSecond);
  EXPECT_EQ(*ParseDuration("250ms"), 250 * kNanosPerMilli);
  for (const char* bad : {"", "-1s", "+1s", "15", "1d", "inf", "1000000h", "s"}) {
    EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace flamefleet
