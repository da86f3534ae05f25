// SPDX-License-Identifier: Apache-2.0
// What the store is asked for, read by the store's own parser.
#include "kubectl/store_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/match/selector.h"

namespace flamefleet::kubectl {
namespace {

using testing::HasSubstr;

// Whether a query for the workload means a series of that pod of namespace shop.
bool Means(const std::string& workload, const std::string& pod, const std::string& ns = "shop") {
  const ProfileQuery query{.ns = "shop", .workload = *ParseWorkloadName({workload})};
  const Result<store::Selector> selector = store::ParseSelector(*SelectorOf(query));
  EXPECT_TRUE(selector.ok()) << selector.status();
  return selector.ok() &&
         selector->Matches({{"__name__", "process_cpu"}, {"namespace", ns}, {"pod", pod}});
}

TEST(SelectorOf, MeansThePodsOfTheWorkloadAndNoOthers) {
  EXPECT_TRUE(Means("deployment/pay", "pay-6b9f7c5d8-9qzvw"));
  EXPECT_FALSE(Means("deployment/pay", "pay-worker-6b9f7c5d8-9qzvw"));
  EXPECT_FALSE(Means("deployment/pay", "pay-9qzvw")) << "of a DaemonSet";
  EXPECT_FALSE(Means("deployment/pay", "pay-6b9f7c5d8-9qzvw", "other"));
  EXPECT_TRUE(Means("sts/pay", "pay-12"));
  EXPECT_FALSE(Means("sts/pay", "pay-9qzvw"));
  EXPECT_TRUE(Means("ds/pay", "pay-9qzvw"));
  EXPECT_TRUE(Means("job/pay", "pay-9qzvw"));
  EXPECT_TRUE(Means("job/pay", "pay-3-9qzvw")) << "an indexed Job";
  EXPECT_TRUE(Means("pay.v1", "pay.v1"));
  EXPECT_FALSE(Means("pay.v1", "payxv1"));
}

TEST(SelectorOf, LongNamesAreCutAsKubernetesCutsThem) {
  const std::string name(60, 'a');
  EXPECT_TRUE(Means("deployment/" + name, std::string(58, 'a') + "9qzvw"));
  const std::string shorter(50, 'b');
  EXPECT_TRUE(Means("deployment/" + shorter, shorter + "-6b9f7c59qzvw"));
  EXPECT_FALSE(Means("deployment/" + shorter, std::string(49, 'b') + "c-6b9f7c59qzvw"));
}

TEST(SelectorOf, TypesAreThoseOfTargetsOrOfTheStore) {
  ProfileQuery query{.ns = "shop", .workload = *ParseWorkloadName({"p"})};
  EXPECT_THAT(*SelectorOf(query), HasSubstr("process_cpu{"));
  query.type = "memory:alloc_space";
  EXPECT_THAT(*SelectorOf(query), HasSubstr("memory:alloc_space{"));
  query.type = "cpu{}";
  EXPECT_EQ(SelectorOf(query).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace flamefleet::kubectl
