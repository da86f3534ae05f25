// SPDX-License-Identifier: Apache-2.0
// The operator with `--watch-namespace` and the rights that it has then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/operator/operator_fixture.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

// With the rights of the component `namespaced` and of one namespace beside its own, and no others.
class NamespacedOperatorTest : public OperatorTest {
 protected:
  void SetUp() override {
    const std::string overlay = testing::TempDir() + "/ff-namespaced-" + std::to_string(getpid());
    std::filesystem::create_directory(overlay);
    const auto from_overlay = [&](const char* path) {
      return std::filesystem::relative(path, std::filesystem::canonical(overlay)).string();
    };
    std::ofstream(overlay + "/kustomization.yaml")
        << json{{"resources", json::array({from_overlay("config/operator")})},
                {"components", json::array({from_overlay("config/namespaced")})}};
    server_->MustKubectl({"apply", "--server-side", "--force-conflicts", "-k", overlay});
    server_->MustKubectl({"apply", "-f", "config/samples/watched_namespace.yaml"});
    std::filesystem::remove_all(overlay);
    // One of each kind of role and binding: the authorizer sees them a moment later.
    ASSERT_TRUE(Eventually([&] {
      return May("list", "pods", "shop") && May("list", "daemonsets.apps", kNamespace) &&
             May("create", "events.events.k8s.io", "default") &&
             May("create", "tokenreviews.authentication.k8s.io", "default");
    }));
    operator_ = std::make_unique<OperatorProcess>(
        OwnKubeconfig(), std::vector<std::string>{"--watch-namespace=shop"});
    ASSERT_TRUE(Eventually([&] { return operator_->Leads(); }));
  }

  static bool May(const char* verb, const char* resource, const char* ns) {
    return server_
               ->Kubectl({"auth", "can-i", verb, resource, "-n", ns,
                          "--as=" + std::string(kOperatorAccount)})
               .exit_code == 0;
  }

  static std::string OwnKubeconfig() {
    json config = json::parse(server_->MustKubectl({"config", "view", "--raw", "-o", "json"}));
    std::string token =
        server_->MustKubectl({"create", "token", "flamefleet-operator", "-n", kNamespace});
    token.erase(token.find_last_not_of('\n') + 1);
    config["users"][0]["user"] = {{"token", token}};
    const std::string path = audit_ + ".kubeconfig";
    std::ofstream(path) << config;
    return path;
  }

  // The requests of the operator, as "<verb> <URI>", by the code of the answer.
  static std::map<int, std::set<std::string>> Requests() {
    std::map<int, std::set<std::string>> requests;
    std::ifstream log(audit_ + ".log");
    for (std::string line; std::getline(log, line);) {
      const json event = json::parse(line, nullptr, false);
      if (!event.is_object() || !event.contains("responseStatus")) continue;  // its last is half
      requests[event["responseStatus"].value("code", 0)].insert(
          event["verb"].get<std::string>() + " " + event["requestURI"].get<std::string>());
    }
    return requests;
  }
};

TEST_F(NamespacedOperatorTest, ItWorksWithItsRightsAndAsksForNothingElse) {
  const auto agent = StartFleet();
  agent->ReportAllDelivering();
  EXPECT_TRUE(Eventually([&] { return TargetIs("True"); }));
  RunPod("shop", "wrong", {{"annotations", {{"pyroscope.io/scrape", "perhaps"}}}});
  EXPECT_TRUE(Eventually([&] {
    return server_->Kubectl({"get", "events", "-n", "shop"}).text.find("InvalidAnnotation") !=
           std::string::npos;
  }));
  server_->MustKubectl({"delete", "pod", "checkout-1", "-n", "shop", "--force"});
  EXPECT_TRUE(Eventually([&] { return !agent->Has("checkout-1"); }));
  // An event about a cluster's object: a DaemonSet that the API server refuses.
  const json toleration = {
      {"key", "a"}, {"operator", "Exists"}, {"effect", "NoSchedule"}, {"tolerationSeconds", 5}};
  Apply(Pool({{"tolerations", json::array({toleration})}}));
  EXPECT_TRUE(Eventually([&] {
    return server_->Kubectl({"get", "events", "-n", "default"}).text.find("ApplyRefused") !=
           std::string::npos;
  }));
  const auto requests = Requests();
  EXPECT_THAT(requests.contains(403) ? requests.at(403) : std::set<std::string>(), IsEmpty());
  EXPECT_TRUE(requests.contains(200));
}

TEST_F(NamespacedOperatorTest, ATargetElsewhereIsToldThatNobodySeesItsPods) {
  json target = Target();
  target["metadata"]["namespace"] = "default";
  Apply(target);
  EXPECT_TRUE(Eventually([&] {
    return Condition(Get("pt", "checkout", "default"), "Ready").value("reason", "") ==
           "NamespaceNotWatched";
  }));
  EXPECT_THAT(Condition(Get("pt", "checkout", "default"), "Accepted")["message"].get<std::string>(),
              HasSubstr("flamefleet-system, shop"));
}

TEST_F(NamespacedOperatorTest, APoolIsToldThatItsSelectorOfNamespacesSelectsNothing) {
  Apply(Pool({{"optIn", {{"namespaceSelector", {{"matchLabels", {{"team", "a"}}}}}}}}));
  EXPECT_TRUE(Eventually([&] {
    return Condition(Get("ap", "default", ""), "Degraded").value("reason", "") ==
           "NamespacesNotRead";
  }));
}

}  // namespace
}  // namespace flamefleet
