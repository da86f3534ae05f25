// SPDX-License-Identifier: Apache-2.0
#include "operator/triggers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/fakes/fake_clock.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::UnorderedElementsAre;

json Pod(const std::string& ns, const std::string& name, const std::string& node,
         const json& labels = json::object(), const json& annotations = json::object()) {
  return {{"metadata",
           {{"namespace", ns},
            {"name", name},
            {"uid", "uid-" + name},
            {"labels", labels},
            {"annotations", annotations}}},
          {"spec", {{"nodeName", node}}},
          {"status", {{"phase", "Running"}}}};
}

json Target(const std::string& ns, const std::string& name, const std::string& app,
            const std::string& version = "1") {
  return {{"metadata", {{"namespace", ns}, {"name", name}, {"resourceVersion", version}}},
          {"spec",
           {{"selector", {{"matchLabels", {{"app", app}}}}}, {"profiles", {{{"type", "cpu"}}}}}}};
}

json Named(const std::string& name, const std::string& version = "1") {
  return {{"metadata", {{"name", name}, {"resourceVersion", version}}}, {"spec", json::object()}};
}

class TriggersTest : public testing::Test {
 protected:
  TriggersTest() {
    Put(cache_.targets, Target("shop", "checkout", "checkout"));
    Put(cache_.targets, Target("shop", "cart", "cart"));
    Put(cache_.targets, Target("other", "checkout", "checkout"));
    Put(cache_.pools, Named("default"));
    Put(cache_.backends, Named("main"));
    Put(cache_.pods, Pod("shop", "checkout-1", "n1", {{"app", "checkout"}}));
    Put(cache_.pods, Pod("shop", "cart-1", "n2", {{"app", "cart"}}));
    TakeKeys();
  }

  static void Put(ObjectSink& store, const json& object) {
    const Status put = store.Upsert(object);
    EXPECT_TRUE(put.ok()) << put;
  }
  // All keys that are due within the longest delay.
  std::vector<std::string> TakeKeys() {
    clock_.Advance(std::chrono::nanoseconds(Triggers::kCountDelay).count());
    std::vector<std::string> keys;
    while (const auto key = queue_.TryTake()) {
      keys.push_back(*key);
      queue_.Done(*key);
    }
    return keys;
  }

  FakeClock clock_;
  Metrics metrics_;
  ClusterCache cache_{"flamefleet-system", metrics_};
  WorkQueue queue_{clock_, metrics_, "test"};
  Triggers triggers_{cache_, queue_, "flamefleet-system"};
};

TEST_F(TriggersTest, APodConcernsItsNodeAndTheTargetsThatMatchIt) {
  Put(cache_.pods, Pod("shop", "checkout-2", "n3", {{"app", "checkout"}}));
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("node/n3", "target/shop/checkout"));
}

TEST_F(TriggersTest, APodThatStopsMatchingConcernsTheTargetItMatchedBefore) {
  Put(cache_.pods, Pod("shop", "checkout-1", "n1", {{"app", "cart"}}));
  EXPECT_THAT(TakeKeys(),
              UnorderedElementsAre("node/n1", "target/shop/checkout", "target/shop/cart"));
}

TEST_F(TriggersTest, AnAgentConcernsThePoolsAndAnAnnotatedPodItsNodeAlone) {
  Put(cache_.pods, Pod("flamefleet-system", "agent", "n1"));
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("node/n1", "pool/default"));
  Put(cache_.pods, Pod("other", "p", "n1", json::object(), {{"pyroscope.io/scrape", "true"}}));
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("node/n1"));
}

TEST_F(TriggersTest, ADeletedPodConcernsWhatItConcernedBefore) {
  cache_.pods.Delete("shop", "checkout-1");
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("node/n1", "target/shop/checkout"));
}

TEST_F(TriggersTest, ATargetConcernsTheNodesOfItsPodsOldAndNew) {
  Put(cache_.targets, Target("shop", "checkout", "cart"));
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("target/shop/checkout", "node/n1", "node/n2",
                                               "target/shop/cart"));
}

TEST_F(TriggersTest, AStatusOfATargetConcernsOnlyTheTarget) {
  json target = Target("shop", "checkout", "checkout", "2");
  target["status"] = {{"pods", {{"matched", 1}}}};
  Put(cache_.targets, target);
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("target/shop/checkout"));
}

TEST_F(TriggersTest, ABackendConcernsEverybody) {
  json backend = Named("main", "2");
  backend["spec"]["endpoint"] = "http://elsewhere:4040";
  Put(cache_.backends, backend);
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("backend/main", "pool/default", "node/n1", "node/n2",
                                               "target/shop/checkout", "target/shop/cart",
                                               "target/other/checkout"));
}

TEST_F(TriggersTest, WhatWeMadeConcernsWhatItWasMadeFor) {
  json daemon_set = Named("flamefleet-agent-default");
  daemon_set["metadata"]["labels"] = {{"flamefleet.dev/pool", "default"}};
  Put(cache_.daemon_sets, daemon_set);
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("pool/default"));
  json service = Named("flamefleet-store-main");
  service["metadata"]["labels"] = {{"flamefleet.dev/backend", "main"}};
  Put(cache_.services, service);
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("backend/main"));
}

std::shared_ptr<const plan::NodeReport> Report(const std::string& pod_uid,
                                               plan::CollectionState state,
                                               int64_t last_delivered_ns,
                                               const std::string& pool = "default") {
  plan::NodeReport report;
  report.pool = pool;
  report.connected = report.received = report.sampling = true;
  report.collections[{"other", "main", ProfileType::kCpu}] = {};
  plan::CollectionHealth& health = report.collections[{pod_uid, "main", ProfileType::kCpu}];
  health.state = state;
  health.last_delivered_ns = last_delivered_ns;
  return std::make_shared<const plan::NodeReport>(std::move(report));
}

TEST_F(TriggersTest, AReportConcernsTheTargetsWhosePodsChangedAndThePool) {
  Put(cache_.pools, Named("gpu"));
  Put(cache_.pods, Pod("shop", "cart-2", "n1", {{"app", "cart"}}));
  TakeKeys();
  // The first of a node: nobody knows what changed.
  triggers_.OnReport("n1", Report("uid-checkout-1", plan::CollectionState::kWaiting, 0));
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("target/shop/checkout", "target/shop/cart",
                                               "pool/default", "backend/main"));
  triggers_.OnReport("n1", Report("uid-checkout-1", plan::CollectionState::kDelivering, 5));
  EXPECT_THAT(TakeKeys(),
              UnorderedElementsAre("target/shop/checkout", "pool/default", "backend/main"));
  // Gone to another pool: both count.
  triggers_.OnReport("n1", Report("uid-checkout-1", plan::CollectionState::kDelivering, 5, "gpu"));
  EXPECT_THAT(TakeKeys(), IsSupersetOf({"pool/default", "pool/gpu"}));
}

TEST_F(TriggersTest, AReportWithNothingNewButTheTimeIsNoHurry) {
  triggers_.OnReport("n1", Report("uid-checkout-1", plan::CollectionState::kDelivering, 5));
  TakeKeys();
  for (int i = 6; i < 10; ++i)
    triggers_.OnReport("n1", Report("uid-checkout-1", plan::CollectionState::kDelivering, i));
  EXPECT_THAT(TakeKeys(), IsEmpty());
  clock_.Advance(std::chrono::nanoseconds(Triggers::kTimeDelay).count());
  EXPECT_THAT(TakeKeys(),
              UnorderedElementsAre("target/shop/checkout", "pool/default", "backend/main"));
}

TEST_F(TriggersTest, AnAgentThatGoesConcernsAllPodsOfItsNode) {
  const auto report = Report("uid-checkout-1", plan::CollectionState::kDelivering, 5);
  triggers_.OnReport("n1", report);
  TakeKeys();
  plan::NodeReport gone = *report;
  gone.connected = false;
  triggers_.OnReport("n1", std::make_shared<const plan::NodeReport>(gone));
  EXPECT_THAT(TakeKeys(),
              UnorderedElementsAre("target/shop/checkout", "pool/default", "backend/main"));
}

TEST(ChangedPods, AreThoseWhoseCollectionsCameWentOrFared) {
  plan::NodeReport before;
  before.collections[{"a", "main", ProfileType::kCpu}] = {};
  before.collections[{"b", "main", ProfileType::kCpu}] = {};
  before.collections[{"c", "main", ProfileType::kCpu}].last_delivered_ns = 1;
  plan::NodeReport after = before;
  EXPECT_THAT(*ChangedPods(&before, after), IsEmpty());
  after.collections.erase({"a", "main", ProfileType::kCpu});
  after.collections[{"b", "main", ProfileType::kCpu}].last_delivered_ns = 1;  // for the first time
  after.collections[{"c", "main", ProfileType::kCpu}].last_delivered_ns = 2;
  after.collections[{"c", "main", ProfileType::kCpu}].stacks["complete"] = 9;
  after.collections[{"d", "main", ProfileType::kCpu}] = {};
  EXPECT_THAT(*ChangedPods(&before, after), UnorderedElementsAre("a", "b", "d"));
  EXPECT_EQ(ChangedPods(nullptr, after), std::nullopt);
}

TEST_F(TriggersTest, ABurstOfPodsIsOneRunOfTheNode) {
  for (int i = 0; i < 100; ++i)
    Put(cache_.pods, Pod("other", "p" + std::to_string(i), "n9"));
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("node/n9"));
  EXPECT_THAT(TakeKeys(), IsEmpty());
}

json Namespace(const std::string& name, const json& labels, const std::string& version) {
  return {{"metadata", {{"name", name}, {"labels", labels}, {"resourceVersion", version}}}};
}

TEST_F(TriggersTest, LabelsOfANamespaceConcernItsNodesOnceAPoolSelectsByThem) {
  Put(cache_.namespaces, Namespace("shop", {{"a", "1"}}, "1"));
  EXPECT_THAT(TakeKeys(), IsEmpty());
  json pool = Named("default", "2");
  pool["spec"]["optIn"]["namespaceSelector"]["matchLabels"]["a"] = "2";
  Put(cache_.pools, pool);
  TakeKeys();
  Put(cache_.namespaces, Namespace("shop", {{"a", "2"}}, "2"));
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("node/n1", "node/n2", "pool/default"));
  Put(cache_.namespaces, Namespace("shop", {{"a", "2"}}, "3"));
  EXPECT_THAT(TakeKeys(), IsEmpty());
}

TEST_F(TriggersTest, ThePodsOfADaemonSetAndItsEventsConcernItsPool) {
  json pod = Pod("flamefleet-system", "a", "", {{"flamefleet.dev/pool", "default"}});
  Put(cache_.agent_pods, pod);
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("pool/default"));
  Put(cache_.daemon_sets, {{"metadata",
                            {{"namespace", "flamefleet-system"},
                             {"name", "flamefleet-agent-default"},
                             {"labels", {{"flamefleet.dev/pool", "default"}}}}}});
  TakeKeys();
  Put(cache_.refused_pods, {{"metadata", {{"namespace", "flamefleet-system"}, {"name", "e"}}},
                            {"regarding", {{"name", "flamefleet-agent-default"}}},
                            {"note", "no"}});
  EXPECT_THAT(TakeKeys(), UnorderedElementsAre("pool/default"));
}

}  // namespace
}  // namespace flamefleet
