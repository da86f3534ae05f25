// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/applier.h"

#include <gtest/gtest.h>

namespace flamefleet {
namespace {

TEST(IsOlderVersion, ComparesNumbersOfAnyLength) {
  EXPECT_TRUE(IsOlderVersion("9", "10"));
  EXPECT_FALSE(IsOlderVersion("10", "9"));
  EXPECT_TRUE(IsOlderVersion("99999999999999999999998", "99999999999999999999999"));
  EXPECT_FALSE(IsOlderVersion("7", "7"));
  EXPECT_TRUE(IsOlderVersion("", "1"));
}

}  // namespace
}  // namespace flamefleet
