// SPDX-License-Identifier: Apache-2.0
#include "store/query/top_table.h"

#include <gtest/gtest.h>

namespace flamefleet::store {
namespace {

TEST(FormatValue, UnitIsTheLargestThatFits) {
  EXPECT_EQ(FormatValue(0, "nanoseconds"), "0ns");
  EXPECT_EQ(FormatValue(999, "nanoseconds"), "999ns");
  EXPECT_EQ(FormatValue(1'500, "nanoseconds"), "1.50us");
  EXPECT_EQ(FormatValue(10'000'000, "nanoseconds"), "10.00ms");
  EXPECT_EQ(FormatValue(90'000'000'000, "nanoseconds"), "1.50min");
  EXPECT_EQ(FormatValue(-2'000'000'000, "nanoseconds"), "-2.00s");
  EXPECT_EQ(FormatValue(7'200'000'000'000, "nanoseconds"), "2.00h");
  EXPECT_EQ(FormatValue(1023, "bytes"), "1023B");
  EXPECT_EQ(FormatValue(1536, "bytes"), "1.50kB");
  EXPECT_EQ(FormatValue(INT64_MIN, "bytes"), "-8388608.00TB");
  EXPECT_EQ(FormatValue(12'345, "count"), "12345");
}

}  // namespace
}  // namespace flamefleet::store
