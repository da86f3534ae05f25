// SPDX-License-Identifier: Apache-2.0
#include "store/query/flame_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/pprof/test_profiles.h"

namespace flamefleet::store {
namespace {

using pprof::CallTree;
using ::testing::ElementsAre;

pprof::Profile Cpu() {
  return pprof::DecodeOrDie(pprof::ReadProfileFile("hand_cpu2.pb.gz"));
}

// main.main > main.work (self 10) > leafA 30, leafB 20.
TEST(FlameLevels, ARowHasDistanceTotalSelfAndNameOfEachNode) {
  CallTree tree;
  ASSERT_TRUE(tree.Add(Cpu(), 1, CallTree::kMain).ok());
  const FlameLevels levels = LevelsOf(tree, CallTree::kMain);
  EXPECT_THAT(levels.names,
              ElementsAre("total", "main.main", "main.work", "main.leafA", "main.leafB"));
  constexpr int64_t kMs = 1'000'000;
  EXPECT_THAT(levels.levels,
              ElementsAre(ElementsAre(0, 60 * kMs, 0, 0), ElementsAre(0, 60 * kMs, 0, 1),
                          ElementsAre(0, 60 * kMs, 10 * kMs, 2),
                          ElementsAre(0, 30 * kMs, 30 * kMs, 3,  //
                                      0, 20 * kMs, 20 * kMs, 4)));
  EXPECT_EQ(levels.total[0], 60 * kMs);
  EXPECT_EQ(levels.max_self, 30 * kMs);
}

TEST(FlameLevels, WhatALimitCutsIsANodeOther) {
  CallTree tree;
  ASSERT_TRUE(tree.Add(Cpu(), 0, CallTree::kMain).ok());
  tree.Prune(3);
  const FlameLevels levels = LevelsOf(tree, CallTree::kMain);
  EXPECT_THAT(levels.names, ElementsAre("total", "main.main", "main.work", "other"));
  EXPECT_THAT(levels.levels.back(), ElementsAre(0, 5, 5, 3));
}

TEST(FlameLevels, OfTwoProfilesARowHasBothSides) {
  CallTree tree;
  ASSERT_TRUE(tree.Add(Cpu(), 0, CallTree::kMain).ok());
  pprof::Profile other = Cpu();
  for (int64_t& value : other.values)
    value *= 3;
  ASSERT_TRUE(tree.Add(other, 0, CallTree::kBaseline).ok());
  const FlameLevels levels = LevelsOf(tree, CallTree::kBaseline);
  EXPECT_THAT(levels.levels[0], ElementsAre(0, 6, 0, 0, 18, 0, 0));
  EXPECT_THAT(levels.levels[3], ElementsAre(0, 3, 3, 0, 9, 9, 3, 0, 2, 2, 0, 6, 6, 4));
  EXPECT_EQ(levels.total[1], 18);
}

TEST(FlameLevels, NothingIsARootOfZeros) {
  const FlameLevels levels = LevelsOf(CallTree(), CallTree::kMain);
  EXPECT_THAT(levels.names, ElementsAre("total"));
  EXPECT_THAT(levels.levels, ElementsAre(ElementsAre(0, 0, 0, 0)));
}

}  // namespace
}  // namespace flamefleet::store
