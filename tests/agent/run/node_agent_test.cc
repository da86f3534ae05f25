// SPDX-License-Identifier: Apache-2.0
// The whole agent between a fake operator, a pod that serves pprof and a backend, over real sockets
// and, where this kernel lets us, with eBPF.
#include "agent/run/node_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/http/fetch.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fake_operator.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using fleet::v1alpha1::CollectionHealth;
using ::testing::HasSubstr;

class NodeAgentTest : public ::testing::Test {
 protected:
  NodeAgentTest()
      : pod_(*HttpServer::Create({.listen = "127.0.0.1:0"}, [](const HttpServerRequest& request) {
          if (request.path != "/goroutine") return HttpServerResponse{.status = 404};
          return HttpServerResponse{.body = pprof::ReadProfileFile("hand_goroutine.pb.gz")};
        })) {}

  std::string Pull(const std::string& path, const std::string& type) const {
    return "pulls { type: " + type + " port: " + std::to_string(pod_->port()) + " path: \"" + path +
           "\" interval_ms: 1000 timeout_ms: 5000 container: \"app\" backend: \"main\" "
           "labels { key: \"service_name\" value: \"shop\" } } ";
  }
  std::string Snapshot() const {
    return "snapshot { version: 1 config { sampling_frequency_hz: 97 backends { name: \"main\" "
           "endpoint: \"" +
           backend_.Url() + "\" } } pods { uid: \"u\" ip: \"127.0.0.1\" " +
           Pull("/goroutine", "PROFILE_TYPE_GOROUTINE") + Pull("/nothing", "PROFILE_TYPE_MUTEX") +
           "} }";
  }
  void Start(const FakeOperator& fake) { StartWithOperatorAt(fake.address()); }
  void StartWithOperatorAt(const std::string& address) {
    auto agent = NodeAgent::Create({.control = {.operator_address = address,
                                                .node = "n1",
                                                .trust_file = files_.trust_file(),
                                                .token_file = files_.token_file()},
                                    .listen = "127.0.0.1:0",
                                    .state_dir = state_.path()});
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
  }
  FetchResponse Get(const std::string& target) const {
    return *Fetch({.address = "127.0.0.1", .port = agent_->http_port(), .target = target}, {});
  }
  static CollectionHealth HealthOf(const FakeOperator& fake, fleet::v1alpha1::ProfileType type) {
    const auto report = fake.LastReport();
    for (const auto& health : report.collections()) {
      if (health.type() == type) return health;
    }
    return {};
  }

  TempDir state_;
  ChannelFiles files_;
  std::unique_ptr<HttpServer> pod_;
  FakeBackend backend_;
  std::unique_ptr<NodeAgent> agent_;
};

TEST_F(NodeAgentTest, WhatAPodServesReachesTheBackendAndTheReportSaysSo) {
  FakeOperator fake(files_, Snapshot());
  Start(fake);
  ASSERT_TRUE(WaitUntil([&] { return backend_.Count() >= 2; }));
  EXPECT_EQ(FakeBackend::LabelsOf(backend_.Requests()[0]),
            "__delta__=false,__name__=goroutine,service_name=shop");
  EXPECT_TRUE(WaitUntil([&] {
    return HealthOf(fake, fleet::v1alpha1::PROFILE_TYPE_GOROUTINE).state() ==
           fleet::v1alpha1::COLLECTION_STATE_DELIVERING;
  }));
  EXPECT_TRUE(WaitUntil(
      [&] { return HealthOf(fake, fleet::v1alpha1::PROFILE_TYPE_MUTEX).reason() == "HTTPError"; }));
  EXPECT_EQ(Get("/readyz").status, 200);
  EXPECT_THAT(Get("/metrics").body, HasSubstr("flamefleet_agent_profiles_delivered_total"));
}

TEST_F(NodeAgentTest, ProfilesFlowOnWhileTheOperatorIsAway) {
  {
    FakeOperator fake(files_, Snapshot());
    Start(fake);
    ASSERT_TRUE(WaitUntil([&] { return backend_.Count() >= 1; }));
  }
  const size_t before = backend_.Count();
  EXPECT_TRUE(WaitUntil([&] { return backend_.Count() >= before + 2; }));
}

TEST_F(NodeAgentTest, AnAgentThatRestartsWhileTheOperatorIsAwayGoesOn) {
  {
    FakeOperator fake(files_, Snapshot());
    Start(fake);
    ASSERT_TRUE(WaitUntil([&] { return backend_.Count() >= 1; }));
  }
  agent_.reset();
  const size_t before = backend_.Count();
  StartWithOperatorAt("127.0.0.1:1");
  EXPECT_TRUE(WaitUntil([&] { return backend_.Count() >= before + 2; }));
}

TEST_F(NodeAgentTest, WhatTheOperatorTookAwayDoesNotComeBackAfterARestart) {
  {
    FakeOperator fake(files_, Snapshot());
    Start(fake);
    ASSERT_TRUE(WaitUntil([&] { return fake.LastAck() == 1; }));
    EXPECT_FALSE(std::filesystem::is_empty(state_.path()));
    fake.Send("delta { version: 2 removed_pod_uids: \"u\" }");
    ASSERT_TRUE(WaitUntil([&] { return fake.LastAck() == 2; }));
  }
  EXPECT_TRUE(std::filesystem::is_empty(state_.path()));
  agent_.reset();
  StartWithOperatorAt("127.0.0.1:1");
  EXPECT_THAT(Get("/metrics").body, HasSubstr("flamefleet_agent_scrape_jobs 0"));
}

TEST_F(NodeAgentTest, ARemovedPodIsNoLongerPulled) {
  FakeOperator fake(files_, Snapshot());
  Start(fake);
  ASSERT_TRUE(WaitUntil([&] { return backend_.Count() >= 1; }));
  fake.Send("delta { version: 2 removed_pod_uids: \"u\" }");
  ASSERT_TRUE(WaitUntil([&] { return fake.LastAck() == 2; }));
  EXPECT_TRUE(WaitUntil([&] { return fake.LastReport().collections_size() == 0; }));
  EXPECT_THAT(Get("/metrics").body, HasSubstr("flamefleet_agent_scrape_jobs 0"));
}

}  // namespace
}  // namespace flamefleet::agent
