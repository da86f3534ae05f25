// SPDX-License-Identifier: Apache-2.0
#include "operator/pod_sums.h"

#include <gtest/gtest.h>

namespace flamefleet {
namespace {

using Report = std::shared_ptr<const plan::NodeReport>;

Report ReportOf(plan::CollectionState state, int64_t last_delivered_ns, bool connected = true) {
  plan::NodeReport report{.pool = "p", .connected = connected, .received = true};
  plan::CollectionHealth& health = report.collections[{"pod", "main", ProfileType::kCpu}];
  health.state = state;
  health.last_delivered_ns = last_delivered_ns;
  return std::make_shared<const plan::NodeReport>(std::move(report));
}

plan::NodePods Sum(int64_t matched) {
  return {.counts = {.matched = matched}};
}

TEST(PodSums, ASumIsKeptWhileTheReportSaysTheSameOfThePods) {
  PodSums sums;
  const Report first = ReportOf(plan::CollectionState::kDelivering, 1);
  EXPECT_EQ(sums.Find("n", "p", first), nullptr);
  EXPECT_TRUE(sums.Set("n", "p", Sum(3), first).changed);
  EXPECT_EQ(*sums.Find("n", "p", first), Sum(3));
  EXPECT_EQ(*sums.Find("n", "p", ReportOf(plan::CollectionState::kDelivering, 2)), Sum(3));
  EXPECT_EQ(sums.Find("n", "p", ReportOf(plan::CollectionState::kFailing, 2)), nullptr);
  EXPECT_EQ(sums.Find("n", "p", nullptr), nullptr);
  EXPECT_EQ(sums.Find("n", "q", first), nullptr);
  EXPECT_EQ(sums.Find("m", "p", first), nullptr);
  sums.Forget("n");
  EXPECT_EQ(sums.Find("n", "p", first), nullptr);
}

TEST(PodSums, TimeAloneChangesTheSumOfANodeWhoseAgentIsAway) {
  PodSums sums;
  const Report away = ReportOf(plan::CollectionState::kDelivering, 1, /*connected=*/false);
  sums.Set("n", "p", Sum(3), away);
  EXPECT_EQ(sums.Find("n", "p", away), nullptr);
  // One that was never there cannot go.
  sums.Set("n", "p", Sum(3), nullptr);
  EXPECT_EQ(*sums.Find("n", "p", nullptr), Sum(3));
}

TEST(PodSums, TheSameSumAgainIsNoChange) {
  PodSums sums;
  sums.Set("n", "p", Sum(3), nullptr);
  EXPECT_FALSE(sums.Set("n", "p", Sum(3), nullptr).changed);
  EXPECT_TRUE(sums.Set("n", "p", Sum(4), nullptr).changed);
  EXPECT_TRUE(sums.Set("n", "q", Sum(4), nullptr).changed);
}

}  // namespace
}  // namespace flamefleet
