// SPDX-License-Identifier: Apache-2.0
#include "kubectl/workload_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flamefleet::kubectl {
namespace {

using testing::HasSubstr;

TEST(WorkloadName, IsNamedAsToKubectl) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"deployment/pay"}, {"deploy", "pay"}, {"deployment.apps/pay"}}) {
    const Result<WorkloadName> name = ParseWorkloadName(arguments);
    ASSERT_TRUE(name.ok()) << name.status();
    EXPECT_EQ(name->Text("shop"), "Deployment shop/pay");
  }
  EXPECT_TRUE(ParseWorkloadName({"pay"})->IsPod());
  EXPECT_TRUE(ParseWorkloadName({"po/pay"})->IsPod());
}

TEST(WorkloadName, WhatIsNoNameIsRefused) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {}, {"a", "b", "c"}, {"deploy/"}, {"pod", "a/b"}, {""}}) {
    EXPECT_EQ(ParseWorkloadName(arguments).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(ErrorMessage(ParseWorkloadName({"service/x"}).status()),
              HasSubstr("kind 'service': want one of pod, deployment"));
}

TEST(WorkloadName, PodsOfAnotherWorkloadOfThatNameAreNotMeant) {
  api::Pod pod;
  pod.meta.name = "pay-1";
  pod.workload_kind = "StatefulSet";
  pod.workload_name = "pay";
  EXPECT_TRUE(ParseWorkloadName({"sts/pay"})->Has(pod));
  EXPECT_FALSE(ParseWorkloadName({"deploy/pay"})->Has(pod));
  EXPECT_FALSE(ParseWorkloadName({"pay"})->Has(pod));
  EXPECT_TRUE(ParseWorkloadName({"pay-1"})->Has(pod));
}

}  // namespace
}  // namespace flamefleet::kubectl
