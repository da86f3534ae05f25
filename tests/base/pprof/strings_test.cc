// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/pprof/profile.h"

namespace flamefleet::pprof {
namespace {

TEST(StringTable, EqualTextsHaveEqualIndexes) {
  StringTable table;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 10'000; ++i) {
      const uint32_t index = table.Intern("text " + std::to_string(i));
      EXPECT_EQ(index, static_cast<uint32_t>(i + 1));
    }
  }
  EXPECT_EQ(table.Size(), 10'001U);
  EXPECT_EQ(table.Get(4243), "text 4242");
}

TEST(StringTable, IndexZeroIsTheEmptyText) {
  StringTable table;
  EXPECT_EQ(table.Intern(""), 0U);
  EXPECT_EQ(table.Get(0), "");
  table.Intern("a");
  table.Clear();
  EXPECT_EQ(table.Size(), 1U);
  EXPECT_EQ(table.Intern("b"), 1U);
  EXPECT_EQ(table.Get(1), "b");
}

TEST(StringTable, AppendedTextsKeepTheirNumbersAndAreFoundByIntern) {
  StringTable table;
  EXPECT_EQ(table.Append("a"), 1U);
  EXPECT_EQ(table.Append("a"), 2U);
  EXPECT_EQ(table.Append("b"), 3U);
  EXPECT_EQ(table.Intern("b"), 3U);
  EXPECT_EQ(table.Intern("a"), 1U);
  EXPECT_EQ(table.Intern("c"), 4U);
}

}  // namespace
}  // namespace flamefleet::pprof
