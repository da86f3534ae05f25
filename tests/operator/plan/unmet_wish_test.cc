// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/unmet_wish.h"

#include <gtest/gtest.h>

namespace flamefleet::plan {
namespace {

PodPlan Refused(bool by_annotations) {
  PodPlan plan;
  plan.refusals.push_back({ProfileType::kMemory, {"PortRequired", "no port"}, {}});
  plan.refusals.back().askers.annotations = by_annotations;
  if (!by_annotations) plan.refusals.back().askers.targets = {"checkout"};
  return plan;
}

TEST(UnmetWish, IsWhatAnAnnotationAskedForInVain) {
  ASSERT_TRUE(UnmetWish(Refused(true)).has_value());
  EXPECT_EQ(UnmetWish(Refused(true))->reason, "PortRequired");
}

TEST(UnmetWish, IsNotWhatATargetAskedFor) {
  EXPECT_FALSE(UnmetWish(Refused(false)).has_value());
}

TEST(UnmetWish, IsNothingForAPodThatIsProfiledOrDoesNotWantTo) {
  PodPlan profiled = Refused(true);
  profiled.collections.emplace_back();
  EXPECT_FALSE(UnmetWish(profiled).has_value());
  PodPlan vetoed = Refused(true);
  vetoed.vetoed = true;
  EXPECT_FALSE(UnmetWish(vetoed).has_value());
  EXPECT_FALSE(UnmetWish(PodPlan()).has_value());
}

TEST(UnmetWish, IsThatThePoolDoesNotLetTheAnnotationsOptIn) {
  PodPlan plan;
  plan.not_enabled = Problem{"AnnotationsNotEnabled", "pyroscope.io"};
  ASSERT_TRUE(UnmetWish(plan).has_value());
  EXPECT_EQ(UnmetWish(plan)->reason, "AnnotationsNotEnabled");
}

TEST(UnmetWish, IsTheMisspeltKeyOfAPodThatAsksForNothing) {
  PodPlan plan;
  plan.warnings.push_back({"UnknownAnnotation", "pyroscope.io/scrap"});
  ASSERT_TRUE(UnmetWish(plan).has_value());
  EXPECT_EQ(UnmetWish(plan)->reason, "UnknownAnnotation");
}

}  // namespace
}  // namespace flamefleet::plan
