// SPDX-License-Identifier: Apache-2.0
// Applier against a real kube-apiserver: whether anything was written is told by resourceVersion.
#include "operator/apply/applier.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/operator/apiserver_fixture.h"

namespace flamefleet {
namespace {

using nlohmann::json;

class ApplierTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ApiServer(); }
  static void TearDownTestSuite() { delete server_; }
  void TearDown() override {
    server_->MustKubectl({"delete", "service", "store", "--ignore-not-found"});
  }

  static json Intent(int port = 4040) {
    return {{"apiVersion", "v1"},
            {"kind", "Service"},
            {"metadata", {{"name", "store"}, {"namespace", "default"}, {"labels", {{"a", "b"}}}}},
            {"spec",
             {{"selector", {{"app", "store"}}},
              {"ports", {{{"name", "http"}, {"port", port}, {"protocol", "TCP"}}}}}}};
  }
  static json Live() {
    return json::parse(
        server_->MustKubectl({"get", "service", "store", "-o", "json", "--show-managed-fields"}));
  }
  static std::string Version() { return Live()["metadata"]["resourceVersion"]; }

  // As the worker does it: with what the cache would have by now.
  void Apply(Applier& applier, const json& intent) {
    const auto output =
        server_->Kubectl({"get", "service", "store", "-o", "json", "--show-managed-fields"});
    OwnedFields live;
    if (output.exit_code == 0) live = ReadOwnedFields(json::parse(output.text));
    const Status applied =
        applier.Apply(kServices, intent, output.exit_code == 0 ? &live : nullptr, {});
    EXPECT_TRUE(applied.ok()) << applied;
  }
  double Writes(const char* result) {
    return metrics_
        .Counter("flamefleet_operator_object_writes_total",
                 "What became of each object that the operator owns, per reconcile.",
                 {{"result", result}})
        .Value();
  }

  static ApiServer* server_;
  Metrics metrics_;
  Metrics client_metrics_;
  std::unique_ptr<RestClient> client_ = server_->NewClient(client_metrics_);
  OwnWrites own_writes_{[](const Resource&) { return ""; }};
  Applier applier_{*client_, own_writes_, metrics_};
};

ApiServer* ApplierTest::server_ = nullptr;

TEST_F(ApplierTest, ASecondApplySendsNothing) {
  Apply(applier_, Intent());
  const std::string version = Version();
  Apply(applier_, Intent());
  EXPECT_EQ(Version(), version);
  EXPECT_EQ(Writes("applied"), 1);
  EXPECT_EQ(Writes("unchanged"), 1);
}

TEST_F(ApplierTest, ANewProcessWritesNothingThatIsThereAlready) {
  Apply(applier_, Intent());
  const std::string version = Version();
  Metrics metrics;
  Applier restarted(*client_, own_writes_, metrics);
  Apply(restarted, Intent());
  EXPECT_EQ(Version(), version);
}

TEST_F(ApplierTest, AChangedIntentIsApplied) {
  Apply(applier_, Intent());
  Apply(applier_, Intent(4041));
  EXPECT_EQ(Live()["spec"]["ports"][0]["port"], 4041);
  EXPECT_EQ(Live()["spec"]["ports"].size(), 1U);
}

TEST_F(ApplierTest, AFieldThatSomeoneChangedIsRepairedAndOneThatIsTheirsStays) {
  Apply(applier_, Intent());
  server_->MustKubectl({"label", "service", "store", "--overwrite", "a=c", "theirs=1"});
  Apply(applier_, Intent());
  const json labels = Live()["metadata"]["labels"];
  EXPECT_EQ(labels["a"], "b");
  EXPECT_EQ(labels["theirs"], "1");
  const std::string version = Version();
  Apply(applier_, Intent());
  EXPECT_EQ(Version(), version);
}

TEST_F(ApplierTest, AFieldThatSomeoneRemovedComesBack) {
  Apply(applier_, Intent());
  server_->MustKubectl({"label", "service", "store", "a-"});
  Apply(applier_, Intent());
  EXPECT_EQ(Live()["metadata"]["labels"]["a"], "b");
}

TEST_F(ApplierTest, AnObjectThatSomeoneDeletedComesBack) {
  Apply(applier_, Intent());
  server_->MustKubectl({"delete", "service", "store"});
  Apply(applier_, Intent());
  EXPECT_EQ(Live()["metadata"]["labels"]["a"], "b");
}

TEST_F(ApplierTest, ARefusedIntentIsAnErrorAndTheNextIsApplied) {
  json wrong = Intent();
  wrong["spec"]["ports"][0]["port"] = 70000;
  EXPECT_EQ(applier_.Apply(kServices, wrong, nullptr, {}).code(), StatusCode::kInvalidArgument);
  Apply(applier_, Intent());
  EXPECT_EQ(Live()["spec"]["ports"][0]["port"], 4040);
}

}  // namespace
}  // namespace flamefleet
