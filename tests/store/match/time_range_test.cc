// SPDX-License-Identifier: Apache-2.0
#include "store/match/time_range.h"

#include <gtest/gtest.h>

#include "base/clock.h"

namespace flamefleet::store {
namespace {

constexpr int64_t kNow = 1'764'435'600 * kNanosPerSecond;  // 2025-11-29T17:00:00Z

TEST(Time, EveryWayOfWritingIsRead) {
  EXPECT_EQ(*ParseTime("now", kNow), kNow);
  EXPECT_EQ(*ParseTime("now-1h30m", kNow), kNow - 5400 * kNanosPerSecond);
  EXPECT_EQ(*ParseTime("now-2d", kNow), kNow - 2 * 86'400 * kNanosPerSecond);
  EXPECT_EQ(*ParseTime("2025-11-29T17:00:00Z", 0), kNow);
  EXPECT_EQ(*ParseTime("2025-11-29T18:00:00+01:00", 0), kNow);
  EXPECT_EQ(*ParseTime("1764435600", 0), kNow);
  EXPECT_EQ(*ParseTime("1764435600000", 0), kNow);
  EXPECT_EQ(*ParseTime("1764435600000000", 0), kNow);
  EXPECT_EQ(*ParseTime("1764435600000000000", 0), kNow);
  EXPECT_EQ(*ParseTime("0", 0), 0);
}

TEST(Time, AnythingElseIsInvalid) {
  for (const char* text : {"", "yesterday", "now-", "now-1", "now+1h", "now-1x", "-5", "1.5",
                           "now-d", "99999999999999999999", "2025-11-29", "now-99999999d"}) {
    EXPECT_EQ(ParseTime(text, kNow).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(TimeRange, DefaultIsTheLastHour) {
  const TimeRange range = *ParseTimeRange("", "", kNow);
  EXPECT_EQ(range.from_ns, kNow - 3600 * kNanosPerSecond);
  EXPECT_EQ(range.until_ns, kNow);
}

TEST(TimeRange, EndBeforeTheBeginningIsInvalid) {
  EXPECT_EQ(ParseTimeRange("now", "now-1s", kNow).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(ParseTimeRange("now", "now", kNow).ok());
}

TEST(TimeRange, TimesOutsideOfWhatCanBeCountedAreItsEnds) {
  const TimeRange range = *ParseTimeRange("0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", kNow);
  EXPECT_EQ(range.from_ns, 0);
  EXPECT_GT(range.until_ns, kNow);
  EXPECT_EQ(ParseTimeRange("infinite-past", "now", kNow)->from_ns, 0);
}

}  // namespace
}  // namespace flamefleet::store
