// SPDX-License-Identifier: Apache-2.0
#include "agent/health/memory_budget.h"

#include <gtest/gtest.h>

namespace flamefleet::agent {
namespace {

TEST(MemoryBudget, CachesHalveFromEightyPercentOn) {
  MemoryBudget budget;
  EXPECT_FALSE(budget.Observe(79, 100));
  EXPECT_EQ(budget.halvings(), 0);
  EXPECT_TRUE(budget.Observe(80, 100));
  EXPECT_TRUE(budget.Observe(95, 100));
  EXPECT_EQ(budget.halvings(), 2);
}

TEST(MemoryBudget, SomeCacheIsAlwaysLeft) {
  MemoryBudget budget;
  for (int i = 0; i < 100; ++i)
    budget.Observe(100, 100);
  EXPECT_EQ(budget.halvings(), MemoryBudget::kMostHalvings);
  EXPECT_FALSE(budget.Observe(100, 100));
}

TEST(MemoryBudget, CachesGrowAgainOnlyWellBelowTheLimit) {
  MemoryBudget budget;
  budget.Observe(90, 100);
  budget.Observe(90, 100);
  EXPECT_FALSE(budget.Observe(70, 100));
  EXPECT_EQ(budget.halvings(), 2);
  budget.Observe(50, 100);
  EXPECT_EQ(budget.halvings(), 1);
  budget.Observe(50, 100);
  budget.Observe(50, 100);
  EXPECT_EQ(budget.halvings(), 0);
}

}  // namespace
}  // namespace flamefleet::agent
