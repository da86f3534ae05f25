// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/unmet_wish.h"

#include <gtest/gtest.h>

namespace flamefleet::plan {
namespace {

// Of a pod with this plan, on a node that runs an agent or does not.
std::optional<Problem> WishOf(const PodPlan& plan, bool has_agent = true) {
  api::Pod pod;
  pod.node = "n1";
  return UnmetWish({&pod, &plan, {.has_agent_pod = has_agent}});
}

PodPlan Refused(bool by_annotations) {
  PodPlan plan;
  plan.refusals.push_back({ProfileType::kMemory, {"PortRequired", "no port"}, {}});
  plan.refusals.back().askers.annotations = by_annotations;
  if (!by_annotations) plan.refusals.back().askers.targets = {"checkout"};
  return plan;
}

TEST(UnmetWish, IsWhatAnAnnotationAskedForInVain) {
  ASSERT_TRUE(WishOf(Refused(true)).has_value());
  EXPECT_EQ(WishOf(Refused(true))->reason, "PortRequired");
}

TEST(UnmetWish, IsNotWhatATargetAskedFor) {
  EXPECT_FALSE(WishOf(Refused(false)).has_value());
}

TEST(UnmetWish, IsNothingForAPodThatIsProfiledOrDoesNotWantTo) {
  PodPlan profiled = Refused(true);
  profiled.collections.emplace_back();
  EXPECT_FALSE(WishOf(profiled).has_value());
  PodPlan vetoed = Refused(true);
  vetoed.vetoed = true;
  EXPECT_FALSE(WishOf(vetoed).has_value());
  EXPECT_FALSE(WishOf(PodPlan()).has_value());
}

TEST(UnmetWish, IsThatThePoolDoesNotLetTheAnnotationsOptIn) {
  PodPlan plan;
  plan.not_enabled = Problem{"AnnotationsNotEnabled", "pyroscope.io"};
  ASSERT_TRUE(WishOf(plan).has_value());
  EXPECT_EQ(WishOf(plan)->reason, "AnnotationsNotEnabled");
}

TEST(UnmetWish, IsTheMisspeltKeyOfAPodThatAsksForNothing) {
  PodPlan plan;
  plan.warnings.push_back({"UnknownAnnotation", "pyroscope.io/scrap"});
  ASSERT_TRUE(WishOf(plan).has_value());
  EXPECT_EQ(WishOf(plan)->reason, "UnknownAnnotation");
}

TEST(UnmetWish, IsAnAgentWhereAnnotationsBringAProfileAndTheNodeHasNone) {
  PodPlan plan;
  plan.collections.emplace_back();
  // What only a target asks for is in its status.
  EXPECT_FALSE(WishOf(plan, /*has_agent=*/false).has_value());
  plan.annotated = true;
  ASSERT_TRUE(WishOf(plan, /*has_agent=*/false).has_value());
  EXPECT_EQ(WishOf(plan, /*has_agent=*/false)->reason, "NoAgentPool");
  EXPECT_FALSE(WishOf(plan, /*has_agent=*/true).has_value());
}

TEST(UnmetWish, IsTheEndOfAPauseThatSomebodyElseMade) {
  PodPlan plan;
  plan.paused_by = "checkout";
  EXPECT_FALSE(WishOf(plan).has_value());
  plan.annotated = true;
  ASSERT_TRUE(WishOf(plan).has_value());
  EXPECT_EQ(WishOf(plan)->reason, "Paused");
}

}  // namespace
}  // namespace flamefleet::plan
