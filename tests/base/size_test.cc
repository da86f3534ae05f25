// SPDX-License-Identifier: Apache-2.0
#include "base/size.h"

#include <gtest/gtest.h>

namespace flamefleet {
namespace {

TEST(ParseSize, SuffixesAreThoseOfKubernetes) {
  EXPECT_EQ(*ParseSize("1048576"), 1 << 20);
  EXPECT_EQ(*ParseSize("2048Ki"), 2 << 20);
  EXPECT_EQ(*ParseSize("500Mi"), 500 << 20);
  EXPECT_EQ(*ParseSize("10Gi"), int64_t{10} << 30);
  EXPECT_EQ(*ParseSize("2Ti"), int64_t{2} << 40);
  for (const char* bad : {"", "Gi", "10G", "10 Gi", "-1Gi", "1.5Gi", "0", "9999999Ti", "1Gib"}) {
    EXPECT_EQ(ParseSize(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_FALSE(ParseSize("1Ki", 1025).ok());
}

}  // namespace
}  // namespace flamefleet
