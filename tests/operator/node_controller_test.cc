// SPDX-License-Identifier: Apache-2.0
// NodeController: what it tells pods whose annotations bring them nothing, and when. Events go to a
// server that keeps what it is sent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/http/server.h"
#include "operator/control/control_server.h"
#include "operator/controllers.h"
#include "operator/security/store_keys.h"
#include "tests/fakes/fake_clock.h"

namespace flamefleet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kNamespace = "flamefleet-system";

json Pod(const std::string& name, const json& annotations) {
  return {{"metadata",
           {{"namespace", "shop"},
            {"name", name},
            {"uid", "uid-" + name},
            {"annotations", annotations}}},
          {"spec", {{"nodeName", "n1"}, {"containers", {{{"name", "app"}}}}}},
          {"status", {{"phase", "Running"}}}};
}

json AgentPod() {
  json pod = Pod("agent", json::object());
  pod["metadata"]["namespace"] = kNamespace;
  pod["metadata"]["labels"] = {{"flamefleet.dev/pool", "default"}};
  pod["metadata"]["ownerReferences"] = {
      {{"kind", "DaemonSet"}, {"name", "flamefleet-agent-default"}, {"controller", true}}};
  return pod;
}

class NodeControllerTest : public testing::Test {
 protected:
  NodeControllerTest() {
    HttpServerOptions options;
    options.listen = "127.0.0.1:0";
    auto server = HttpServer::Create(options, [this](const HttpServerRequest& request) {
      const json event = json::parse(request.body);
      MutexLock lock(&mutex_);
      said_.push_back(event["regarding"]["name"].get<std::string>() + " " +
                      event["type"].get<std::string>() + " " + event["reason"].get<std::string>());
      return HttpServerResponse{200, "application/json", "{}", {}};
    });
    FF_CHECK(server.ok());
    server_ = *std::move(server);
    ClientConfig config;
    config.base_url = "http://127.0.0.1:" + std::to_string(server_->port());
    auto client = RestClient::Create(config, clock_, metrics_);
    FF_CHECK(client.ok());
    client_ = *std::move(client);
    own_writes_.emplace([](const Resource&) { return std::string(); });
    applier_.emplace(*client_, *own_writes_, metrics_);
    status_.emplace(*client_, *own_writes_, clock_, metrics_);
    events_.emplace(*client_, clock_, metrics_, "me");
    store_keys_.emplace(*client_, clock_, kNamespace);
    context_.emplace(ControllerContext{cache_,
                                       agents_,
                                       assignments_,
                                       pod_sums_,
                                       *applier_,
                                       *status_,
                                       *events_,
                                       *store_keys_,
                                       clock_,
                                       {kNamespace, "image", ""}});
    controller_.emplace(*context_);
    Put(cache_.backends,
        {{"metadata", {{"name", "main"}}},
         {"spec", {{"default", true}, {"type", "Pyroscope"}, {"endpoint", "http://p:4040"}}}});
    Put(cache_.pools, {{"metadata", {{"name", "default"}}}, {"spec", json::object()}});
    Put(cache_.pods, Pod("asks", {{"pyroscope.io/scrape", "true"}}));
    Put(cache_.pods, Pod("does-not", json::object()));
  }

  static void Put(ObjectSink& store, const json& object) {
    const Status put = store.Upsert(object);
    EXPECT_TRUE(put.ok()) << put;
  }
  // When it wants to run again; 0: not by itself.
  std::chrono::nanoseconds Reconcile() {
    const auto outcome = controller_->Reconcile("n1", {});
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome->recheck_after;
  }
  // All that was said once there are so many.
  std::vector<std::string> Said(size_t count) {
    MutexLock lock(&mutex_);
    for (int waits = 0; said_.size() < count && waits < 6000; ++waits)
      WaitFor(never_, mutex_, std::chrono::milliseconds(5));
    return said_;
  }

  FakeClock clock_;
  Metrics metrics_;
  Mutex mutex_;
  CondVar never_;
  std::vector<std::string> said_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<RestClient> client_;
  ClusterCache cache_{kNamespace, metrics_};
  control::ControlServer agents_{
      clock_, metrics_,
      [](const std::string&, const std::stop_token&) { return security::Admission(); },
      [](const std::string&) {}};
  std::map<std::string, std::shared_ptr<const plan::NodeAssignment>> assignments_;
  PodSums pod_sums_;
  std::optional<OwnWrites> own_writes_;
  std::optional<Applier> applier_;
  std::optional<StatusWriter> status_;
  std::optional<EventRecorder> events_;
  std::optional<security::StoreKeys> store_keys_;
  std::optional<ControllerContext> context_;
  std::optional<NodeController> controller_;
};

TEST_F(NodeControllerTest, APodOnANodeWithoutAnAgentSaysSoAfterAMinute) {
  EXPECT_EQ(Reconcile(), kAgentPatience);
  clock_.Advance(std::chrono::nanoseconds(kAgentPatience).count() - 1);
  EXPECT_EQ(Reconcile(), std::chrono::nanoseconds(1));
  clock_.Advance(1);
  EXPECT_EQ(Reconcile(), kSayAgain);
  EXPECT_THAT(Said(1), ElementsAre("asks Warning NoAgentPool"));
}

TEST_F(NodeControllerTest, AnAgentThatComesInTimeLeavesNothingToSay) {
  EXPECT_EQ(Reconcile(), kAgentPatience);
  Put(cache_.pods, AgentPod());
  clock_.Advance(std::chrono::nanoseconds(kAgentPatience).count());
  EXPECT_EQ(Reconcile(), std::chrono::nanoseconds(0));
  // One that goes later has its minute again.
  cache_.pods.Delete(kNamespace, "agent");
  EXPECT_EQ(Reconcile(), kAgentPatience);
}

TEST_F(NodeControllerTest, ThePoolIsConcernedWhenItsPodsComeToSomethingElseAndOnlyThen) {
  Put(cache_.pods, AgentPod());
  const auto concerned = [&] { return controller_->Reconcile("n1", {})->concerns; };
  EXPECT_THAT(concerned(), ElementsAre("pool/default"));
  EXPECT_THAT(concerned(), IsEmpty());
  Put(cache_.pods, Pod("does-not", {{"resource.opentelemetry.io/service.name", "x"}}));
  EXPECT_THAT(concerned(), IsEmpty());
  Put(cache_.pods, Pod("does-not", {{"pyroscope.io/scrape", "true"}}));
  EXPECT_THAT(concerned(), ElementsAre("pool/default"));
  EXPECT_EQ(pod_sums_.Find("n1", "default", nullptr)->counts.matched, 2);
  cache_.pods.Delete("shop", "does-not");
  EXPECT_THAT(concerned(), ElementsAre("pool/default"));
}

TEST_F(NodeControllerTest, WhatStaysTrueIsSaidAgainBeforeTheServerForgetsIt) {
  Put(cache_.pods, AgentPod());
  Put(cache_.pods, Pod("asks", {{"pyroscope.io/scrape", "perhaps"}}));
  EXPECT_EQ(Reconcile(), kSayAgain);
  EXPECT_THAT(Said(1), ElementsAre("asks Warning InvalidAnnotation"));
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(kSayAgain.count());
    EXPECT_EQ(Reconcile(), kSayAgain);
  }
  EXPECT_EQ(Said(2).size(), 2U);
  EXPECT_LE(2 * kSayAgain, std::chrono::minutes(30));
}

}  // namespace
}  // namespace flamefleet
