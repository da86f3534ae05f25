// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/resource.h"

#include <gtest/gtest.h>

namespace flamefleet {
namespace {

TEST(Resource, TheCoreGroupLivesUnderApiAndTheOthersUnderApis) {
  EXPECT_EQ(CollectionPath(kPods), "/api/v1/pods");
  EXPECT_EQ(CollectionPath(kDaemonSets), "/apis/apps/v1/daemonsets");
}

TEST(Resource, ANamespacedObjectHasItsNamespaceInThePath) {
  EXPECT_EQ(ObjectPath(kPods, "shop", "web-0"), "/api/v1/namespaces/shop/pods/web-0");
  EXPECT_EQ(ObjectPath(kAgentPools, "ignored", "default"),
            "/apis/flamefleet.dev/v1alpha1/agentpools/default");
}

TEST(Resource, NoNameCanLeaveItsPathSegment) {
  EXPECT_EQ(ObjectPath(kPods, "a/b", "../x?y"), "/api/v1/namespaces/a%2Fb/pods/..%2Fx%3Fy");
}

}  // namespace
}  // namespace flamefleet
