// SPDX-License-Identifier: Apache-2.0
#include "agent/control/report.h"

#include <gtest/gtest.h>

#include "base/reasons.h"

namespace flamefleet::agent {
namespace {

TEST(BuildReport, NamesTheWaysInWhichStacksEnded) {
  CollectionStatus status{.key = {"uid", "app", ProfileType::kCpu}};
  status.stack_ends[1] = 990;
  status.stack_ends[9] = 10;
  const auto report = BuildReport({status}, {.sampling = true});
  ASSERT_EQ(report.collections_size(), 1);
  const auto& stacks = report.collections(0).stacks();
  ASSERT_EQ(stacks.size(), 2);
  EXPECT_EQ(stacks[0].end(), kWholeStack);
  EXPECT_EQ(stacks[0].count(), 990U);
  EXPECT_EQ(stacks[1].end(), "no_rule");
  EXPECT_EQ(stacks[1].count(), 10U);
}

TEST(BuildReport, TellsWhatIsMissingOfANodeThatIsSampled) {
  const auto report = BuildReport(
      {}, {.sampling = true, .shortages = {{reasons::kProfilesIncomplete, "no names"}}});
  EXPECT_TRUE(report.node().sampling());
  ASSERT_EQ(report.node().problems_size(), 1);
  EXPECT_EQ(report.node().problems(0).reason(), reasons::kProfilesIncomplete);
  EXPECT_EQ(report.node().problems(0).message(), "no names");
}

}  // namespace
}  // namespace flamefleet::agent
