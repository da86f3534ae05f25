// SPDX-License-Identifier: Apache-2.0
#include "agent/health/cpu_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace flamefleet::agent {
namespace {

using ::testing::HasSubstr;

constexpr int kPeriods = 60;

// An agent that takes `fixed` and `per_hz` for each sample a second, and something for names.
struct Node {
  double fixed = 0;
  double per_hz = 0;
  double names = 0;
  double Used(const SamplingEffort& effort) const {
    return fixed + per_hz * effort.frequency_hz + (effort.new_names ? names : 0);
  }
};

double Settle(CpuBudget* budget, const Node& node, int periods = kPeriods) {
  for (int i = 0; i < periods; ++i)
    budget->Observe(node.Used(budget->effort()));
  return node.Used(budget->effort());
}

CpuBudget With(const CpuLimits& limits) {
  CpuBudget budget;
  budget.SetLimits(limits);
  return budget;
}

TEST(CpuBudget, UseSettlesWithinTenPercentBelowTheBudgetWhateverItsFixedPartIs) {
  for (const double fixed : {0.0, 1.0, 5.0, 12.0}) {
    for (const double per_hz : {0.03, 0.06, 0.4}) {
      CpuBudget budget = With({.frequency_hz = 997, .millicores = 20});
      const double used = Settle(&budget, {.fixed = fixed, .per_hz = per_hz});
      EXPECT_LE(used, 20) << fixed << ' ' << per_hz;
      EXPECT_GE(used, 20 * CpuBudget::kRoom) << fixed << ' ' << per_hz;
    }
  }
}

TEST(CpuBudget, SettledUseChangesNothing) {
  CpuBudget budget = With({.frequency_hz = 997, .millicores = 20});
  const Node node = {.fixed = 1, .per_hz = 0.05};
  Settle(&budget, node);
  const SamplingEffort settled = budget.effort();
  Settle(&budget, node);
  EXPECT_EQ(budget.effort(), settled);
}

TEST(CpuBudget, LessLoadBringsTheWantedFrequencyBack) {
  CpuBudget budget = With({.frequency_hz = 997, .millicores = 20});
  Settle(&budget, {.per_hz = 1});
  EXPECT_LT(budget.effort().frequency_hz, 25U);
  Settle(&budget, {.per_hz = 0.001});
  EXPECT_EQ(budget.effort(), (SamplingEffort{.frequency_hz = 997}));
  EXPECT_EQ(budget.Describe(), "");
}

TEST(CpuBudget, PeriodsAreJudgedByTheirMean) {
  CpuBudget budget = With({.frequency_hz = 97, .millicores = 20});
  budget.Observe(30);
  const SamplingEffort lowered = budget.effort();
  for (int i = 0; i < kPeriods; ++i) {
    budget.Observe(18.5);
    budget.Observe(20.5);
  }
  EXPECT_EQ(budget.effort(), lowered);
}

TEST(CpuBudget, OneCalmPeriodRaisesNothing) {
  CpuBudget budget = With({.frequency_hz = 97, .millicores = 20});
  budget.Observe(30);
  const SamplingEffort lowered = budget.effort();
  budget.Observe(10);
  EXPECT_EQ(budget.effort(), lowered);
  budget.Observe(10);
  EXPECT_GT(budget.effort().frequency_hz, lowered.frequency_hz);
}

TEST(CpuBudget, LoadThatComesIsAnsweredInItsFirstPeriodHoweverLongAllWasCalm) {
  CpuBudget budget = With({.frequency_hz = 97, .millicores = 20});
  Settle(&budget, {.fixed = 5});
  budget.Observe(200);
  EXPECT_LT(budget.effort().frequency_hz, 97U);
}

TEST(CpuBudget, OnePeriodHalvesTheFrequencyAtMost) {
  CpuBudget budget = With({.frequency_hz = 96, .millicores = 20});
  budget.Observe(10'000);
  EXPECT_EQ(budget.effort().frequency_hz, 48U);
}

TEST(CpuBudget, NamesGoOnlyWhenFewerSamplesDoNotHelp) {
  CpuBudget budget = With({.frequency_hz = 97, .millicores = 20});
  const Node churn = {.fixed = 3, .per_hz = 0.1, .names = 40};
  while (budget.effort().frequency_hz > CpuBudget::kLeastFrequencyHz) {
    EXPECT_TRUE(budget.effort().new_names);
    Settle(&budget, churn, 1);
  }
  Settle(&budget, churn, 1);
  EXPECT_FALSE(budget.effort().new_names);
  EXPECT_THAT(budget.Describe(), HasSubstr("names"));
  EXPECT_LE(churn.Used(budget.effort()), 20);
}

TEST(CpuBudget, NamesComeBackBeforeSamplesDo) {
  CpuBudget budget = With({.frequency_hz = 97, .millicores = 20});
  Settle(&budget, {.fixed = 100}, 10);
  EXPECT_FALSE(budget.effort().new_names);
  budget.SetLimits({.frequency_hz = 97, .millicores = 20});
  Settle(&budget, {}, CpuBudget::kCalmPeriodsForNames);
  EXPECT_TRUE(budget.effort().new_names);
  EXPECT_EQ(budget.effort().frequency_hz, CpuBudget::kLeastFrequencyHz);
}

TEST(CpuBudget, FrequencyBelowTheFloorIsNeverRaisedToIt) {
  CpuBudget budget = With({.frequency_hz = 2, .millicores = 1});
  Settle(&budget, {.fixed = 100});
  EXPECT_EQ(budget.effort().frequency_hz, 2U);
}

TEST(CpuBudget, WithoutABudgetWhatIsWantedIsDone) {
  CpuBudget budget = With({.frequency_hz = 97, .millicores = 20});
  Settle(&budget, {.fixed = 100});
  budget.SetLimits({.frequency_hz = 199});
  EXPECT_EQ(budget.effort(), (SamplingEffort{.frequency_hz = 199}));
  budget.Observe(1000);
  EXPECT_EQ(budget.effort(), (SamplingEffort{.frequency_hz = 199}));
}

TEST(CpuBudget, AnotherFrequencyIsTakenAtOnceUnlessItIsHeldDown) {
  CpuBudget budget = With({.frequency_hz = 97, .millicores = 20});
  budget.SetLimits({.frequency_hz = 199, .millicores = 20});
  EXPECT_EQ(budget.effort().frequency_hz, 199U);
  Settle(&budget, {.per_hz = 1});
  const uint32_t held = budget.effort().frequency_hz;
  EXPECT_LT(held, 25U);
  budget.SetLimits({.frequency_hz = 499, .millicores = 20});
  EXPECT_EQ(budget.effort().frequency_hz, held);
  EXPECT_THAT(budget.Describe(), HasSubstr("instead of 499"));
  budget.SetLimits({.frequency_hz = 7, .millicores = 20});
  EXPECT_EQ(budget.effort().frequency_hz, 7U);
}

}  // namespace
}  // namespace flamefleet::agent
