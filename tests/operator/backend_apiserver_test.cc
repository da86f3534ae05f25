// SPDX-License-Identifier: Apache-2.0
// Backends: managed stores with their keys, and credentials of users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "tests/operator/operator_fixture.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST_F(OperatorTest, AManagedStoreComesAndGoesWithItsField) {
  Apply(StoreBackend());
  const auto there = [](const char* kind) {
    return Exists(kind, "flamefleet-store-main", kNamespace);
  };
  ASSERT_TRUE(Eventually([&] { return there("deployment") && there("service"); }));
  EXPECT_TRUE(Eventually([] {
    return Get("pb", "main", "").value("/status/endpoint"_json_pointer, "") ==
           "https://flamefleet-store-main.flamefleet-system.svc:4443";
  }));
  Apply({{"apiVersion", "flamefleet.dev/v1alpha1"},
         {"kind", "ProfilingBackend"},
         {"metadata", {{"name", "main"}}},
         {"spec", {{"default", true}, {"type", "Pyroscope"}, {"endpoint", "http://p:4040"}}}});
  EXPECT_TRUE(Eventually([&] { return !there("deployment") && !there("service"); }));
}

TEST_F(OperatorTest, AManagedStoreHasKeysThatAgentsGetAndAPasswordForPeople) {
  const auto agent = StartFleet();
  const auto value = [](const std::string& secret, const std::string& key) {
    const json object = Get("secret", secret, kNamespace);
    if (object.is_null()) return std::string();
    return *DecodeBase64(object.value(json::json_pointer("/data/" + key), ""));
  };
  const auto authorization = [&] { return agent->Config().backends(0).authorization(); };
  ASSERT_TRUE(Eventually([&] { return !authorization().empty(); }));
  const std::string token = value("flamefleet-stores", "main.token");
  EXPECT_EQ(authorization(), "Bearer " + token);
  EXPECT_FALSE(agent->Config().backends(0).hold());
  EXPECT_EQ(agent->Config().backends(0).ca_pem(), value("flamefleet-stores", "trust"));
  const std::string reader = "flamefleet-store-main-reader";
  EXPECT_EQ(value(reader, "username"), "reader");
  const auto auth = [&] { return value("flamefleet-stores", "main.auth"); };
  EXPECT_EQ(auth(),
            "write bearer " + token + "\nread basic reader:" + value(reader, "password") + "\n");
  EXPECT_EQ(Get("secret", reader, kNamespace)["metadata"]["ownerReferences"][0]["name"], "main");

  // Another password, one that is none, and none at all.
  const auto put = [&](const std::string& password) {
    server_->MustKubectl({"patch", "secret", reader, "-n", kNamespace, "-p",
                          json{{"stringData", {{"password", password}}}}.dump()});
  };
  put("other");
  EXPECT_TRUE(Eventually([&] { return auth().ends_with("read basic reader:other\n"); }));
  put("two words");
  EXPECT_TRUE(Eventually([&] {
    return Condition(Get("pb", "main", ""), "Ready")
               .value("message", "")
               .find("want username and password") != std::string::npos;
  }));
  EXPECT_EQ(auth(), "write bearer " + token + "\n");
  server_->MustKubectl({"delete", "secret", reader, "-n", kNamespace});
  EXPECT_TRUE(Eventually([&] { return auth().find("read basic reader:") != std::string::npos; }));
  EXPECT_EQ(authorization(), "Bearer " + token);

  server_->MustKubectl({"delete", "secret", "flamefleet-stores", "-n", kNamespace});
  EXPECT_TRUE(
      Eventually([&] { return !authorization().empty() && authorization() != "Bearer " + token; }));
}

TEST_F(OperatorTest, AStoreThatGetsAVolumeLosesItsDeployment) {
  Apply(StoreBackend());
  const auto there = [](const char* kind) {
    return Exists(kind, "flamefleet-store-main", kNamespace);
  };
  ASSERT_TRUE(Eventually([&] { return there("deployment"); }));
  json backend = StoreBackend();
  backend["spec"]["store"]["managed"]["storage"] = {{"size", "1Gi"}};
  server_->MustKubectl({"replace", "-f", "-"}, backend.dump());
  ASSERT_TRUE(Eventually([&] { return there("statefulset") && !there("deployment"); }));
  server_->MustKubectl({"replace", "-f", "-"}, StoreBackend().dump());
  EXPECT_TRUE(Eventually([&] { return there("deployment") && !there("statefulset"); }));
  EXPECT_TRUE(there("service"));
}

TEST_F(OperatorTest, CredentialsGoToTheAgentsAndNowhereElse) {
  const auto agent = StartFleet();
  json backend = StoreBackend();
  backend["spec"] = {{"default", true},
                     {"type", "Pyroscope"},
                     {"endpoint", "https://pyroscope.example"},
                     {"tenantID", "team-a"},
                     {"tls", {{"serverName", "p.internal"}}},
                     {"auth", {{"bearerTokenSecretRef", {{"name", "login"}}}}}};
  server_->MustKubectl({"replace", "-f", "-"}, backend.dump());
  const auto condition = [](const std::string& type) {
    return Condition(Get("pb", "main", ""), type);
  };
  // Missing: said on the backend and on the target, with names; the agent keeps what it has.
  ASSERT_TRUE(Eventually([&] { return condition("Stalled").value("status", "") == "True"; }));
  EXPECT_EQ(condition("Ready")["message"],
            "Secret \"login\" of namespace flamefleet-system does not exist");
  EXPECT_TRUE(Eventually([&] {
    return Condition(Get("pt", "checkout", "shop"), "Ready").value("reason", "") ==
           "SecretNotFound";
  }));
  EXPECT_TRUE(Eventually([&] { return agent->Config().backends(0).hold(); }));

  const auto put = [](const std::string& token) {
    Apply({{"apiVersion", "v1"},
           {"kind", "Secret"},
           {"metadata", {{"name", "login"}, {"namespace", kNamespace}}},
           {"stringData", {{"token", token}}}});
  };
  put("hush-1");
  ASSERT_TRUE(
      Eventually([&] { return agent->Config().backends(0).authorization() == "Bearer hush-1"; }));
  EXPECT_FALSE(agent->Config().backends(0).hold());
  EXPECT_EQ(agent->Config().backends(0).tenant_id(), "team-a");
  EXPECT_EQ(agent->Config().backends(0).server_name(), "p.internal");
  EXPECT_TRUE(Eventually([&] { return agent->Has("checkout-1"); }));
  put("hush-2");
  EXPECT_TRUE(
      Eventually([&] { return agent->Config().backends(0).authorization() == "Bearer hush-2"; }));
  EXPECT_EQ(agent->snapshots(), 1);
  EXPECT_TRUE(Eventually([&] { return condition("Stalled").value("status", "") == "False"; }));
  EXPECT_THAT(Get("pb", "main", "").dump(), Not(HasSubstr("hush")));
  server_->MustKubectl({"delete", "secret", "login", "-n", kNamespace});
  EXPECT_TRUE(Eventually([&] { return agent->Config().backends(0).hold(); }));
  EXPECT_EQ(agent->Config().backends(0).authorization(), "");
}

}  // namespace
}  // namespace flamefleet
