// SPDX-License-Identifier: Apache-2.0
#include "store/options.h"

#include <gtest/gtest.h>

namespace flamefleet::store {
namespace {

TEST(ParseSize, SuffixesAreThoseOfKubernetes) {
  EXPECT_EQ(*ParseSize("1048576"), 1 << 20);
  EXPECT_EQ(*ParseSize("2048Ki"), 2 << 20);
  EXPECT_EQ(*ParseSize("500Mi"), 500 << 20);
  EXPECT_EQ(*ParseSize("10Gi"), int64_t{10} << 30);
  EXPECT_EQ(*ParseSize("2Ti"), int64_t{2} << 40);
  for (const char* bad :
       {"", "Gi", "10G", "10 Gi", "-1Gi", "1.5Gi", "1Ki", "0", "9999999Ti", "1Gib"}) {
    EXPECT_EQ(ParseSize(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST(IsLoopback, OnlyWhatThisMachineReaches) {
  for (const char* listen : {"127.0.0.1:4040", "[::1]:4040", "localhost:4040"}) {
    EXPECT_TRUE(IsLoopback(listen)) << listen;
  }
  for (const char* listen : {":4040", "0.0.0.0:4040", "[::]:4040", "10.0.0.127:4040"}) {
    EXPECT_FALSE(IsLoopback(listen)) << listen;
  }
}

}  // namespace
}  // namespace flamefleet::store
