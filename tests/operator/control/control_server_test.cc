// SPDX-License-Identifier: Apache-2.0
// The server against gRPC's own client, over a socket.
#include "operator/control/control_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "operator/control/agent_hub.h"
#include "tests/operator/control/control_fixture.h"
#include "tests/support/wait.h"

namespace flamefleet::control {
namespace {

TEST_F(ControlServerTest, AnswersHelloWithASnapshot) {
  server_.SetAssignment("n1", Pods({"a", "b"}));
  Agent agent(server_.port(), trust_);
  const pb::OperatorMessage message = agent.Hello("n1").Read();
  EXPECT_EQ(message.snapshot().version(), 1U);
  EXPECT_EQ(message.snapshot().config().backends(0).endpoint(), "http://store:4040");
  EXPECT_THAT(Uids(message.snapshot().pods()), testing::ElementsAre("a", "b"));
}

TEST_F(ControlServerTest, TellsANodeWithoutWorkToDoNothing) {
  Agent agent(server_.port(), trust_);
  EXPECT_EQ(agent.Hello("n1").Read().snapshot().pods_size(), 0);
}

TEST_F(ControlServerTest, SendsChangesAsDeltas) {
  server_.SetAssignment("n1", Pods({"a", "b"}));
  Agent agent(server_.port(), trust_);
  agent.Hello("n1").Read();
  server_.SetAssignment("n1", Pods({"b", "c"}));
  const pb::Delta delta = agent.Read().delta();
  EXPECT_EQ(delta.version(), 2U);
  EXPECT_THAT(Uids(delta.upserted_pods()), testing::ElementsAre("c"));
  EXPECT_THAT(delta.removed_pod_uids(), testing::ElementsAre("a"));
  EXPECT_FALSE(delta.has_config());
}

TEST_F(ControlServerTest, SendsANodeOnlyItsOwnWork) {
  server_.SetAssignment("n1", Pods({"a"}));
  server_.SetAssignment("n2", Pods({"b"}));
  Agent one(server_.port(), trust_);
  Agent two(server_.port(), trust_);
  EXPECT_THAT(Uids(one.Hello("n1").Read().snapshot().pods()), testing::ElementsAre("a"));
  EXPECT_THAT(Uids(two.Hello("n2").Read().snapshot().pods()), testing::ElementsAre("b"));
}

TEST_F(ControlServerTest, ASlowAgentGetsTheNewestStateAndNoQueue) {
  Agent agent(server_.port(), trust_);
  agent.Hello("n1").Read();
  constexpr int kChanges = 2000;
  plan::PodAssignment pod{.uid = "p", .ns = "shop", .name = "p"};
  pod.containers = {{.name = "app", .labels = {{"filler", std::string(2000, 'x')}}}};
  for (int i = 1; i <= kChanges; ++i) {
    pod.containers[0].id = std::to_string(i);
    server_.SetAssignment("n1", {{"p", pod}});
  }
  int messages = 0;
  std::string last;
  while (last != std::to_string(kChanges)) {
    const pb::OperatorMessage message = agent.Read();
    ASSERT_EQ(message.delta().upserted_pods_size(), 1);
    last = message.delta().upserted_pods(0).containers(0).id();
    ++messages;
  }
  EXPECT_LT(messages, kChanges);
}

TEST_F(ControlServerTest, SendsAChangedConfigurationToItsPoolOnly) {
  server_.SetConfig("gpu", {.sampling_frequency_hz = 97});
  Agent agent(server_.port(), trust_);
  Agent other(server_.port(), trust_);
  agent.Hello("n1").Read();
  EXPECT_EQ(other.Hello("n2", "gpu").Read().snapshot().config().sampling_frequency_hz(), 97U);
  server_.SetConfig("default", {.sampling_frequency_hz = 49});
  EXPECT_EQ(agent.Read().delta().config().sampling_frequency_hz(), 49U);
  server_.SetAssignment("n2", Pods({"a"}));
  EXPECT_FALSE(other.Read().delta().has_config());
}

TEST_F(ControlServerTest, AnAgentOfAPoolWithoutConfigurationWaits) {
  Agent agent(server_.port(), trust_);
  agent.Hello("n1", "later");
  ASSERT_TRUE(Await("n1", [](const plan::NodeReport& report) { return report.connected; }));
  server_.SetConfig("later", {.sampling_frequency_hz = 7});
  EXPECT_EQ(agent.Read().snapshot().config().sampling_frequency_hz(), 7U);
}

TEST_F(ControlServerTest, KeepsTheNewestReport) {
  Agent agent(server_.port(), trust_);
  agent.Hello("n1").Read();
  agent.Ack(1);
  pb::Report report;
  agent.Report(report);
  report.mutable_node()->set_sampling(true);
  agent.Report(report);
  EXPECT_TRUE(Await("n1", [](const plan::NodeReport& seen) { return seen.sampling; }));
  EXPECT_EQ(server_.ReportOf("n1")->pool, "default");
  EXPECT_THAT(server_.Nodes(), testing::ElementsAre("n1"));
}

TEST_F(ControlServerTest, ANodeThatLeavesKeepsItsLastReport) {
  {
    Agent agent(server_.port(), trust_);
    pb::Report report;
    report.mutable_node()->set_sampling(true);
    agent.Hello("n1").Report(report);
    ASSERT_TRUE(Await("n1", [](const plan::NodeReport& seen) { return seen.sampling; }));
  }
  ASSERT_TRUE(Await("n1", [](const plan::NodeReport& seen) { return !seen.connected; }));
  EXPECT_TRUE(server_.ReportOf("n1")->sampling);
  EXPECT_EQ(server_.ReportOf("n1")->disconnected_since_ns, clock_.WallNanos());
}

TEST_F(ControlServerTest, ANodeThatIsGoneForLongIsForgotten) {
  { Agent(server_.port(), trust_).Hello("n1").Read(); }
  ASSERT_TRUE(Await("n1", [](const plan::NodeReport& seen) { return !seen.connected; }));
  clock_.Advance(NodeTable::kForgetAfterNs);
  EXPECT_TRUE(WaitUntil([&] { return server_.ReportOf("n1") == nullptr; }));
}

TEST_F(ControlServerTest, TheNewerStreamOfANodeWins) {
  server_.SetAssignment("n1", Pods({"a"}));
  Agent older(server_.port(), trust_);
  older.Hello("n1").Read();
  Agent newer(server_.port(), trust_);
  EXPECT_THAT(Uids(newer.Hello("n1").Read().snapshot().pods()), testing::ElementsAre("a"));
  EXPECT_EQ(older.Finish().error_code(), grpc::StatusCode::ABORTED);
  EXPECT_TRUE(server_.ReportOf("n1")->connected);
  server_.SetAssignment("n1", Pods({}));
  EXPECT_THAT(newer.Read().delta().removed_pod_uids(), testing::ElementsAre("a"));
}

TEST_F(ControlServerTest, OnlyTheAgentOfTheNodesPoolIsGivenWork) {
  server_.SetConfig("gpu", {});
  server_.SetAssignment("n1", Pods({"a"}), "gpu");
  Agent own(server_.port(), trust_);
  EXPECT_THAT(Uids(own.Hello("n1", "gpu").Read().snapshot().pods()), testing::ElementsAre("a"));
  Agent other(server_.port(), trust_);
  EXPECT_EQ(other.Hello("n1", "default").Read().snapshot().pods_size(), 0);
  EXPECT_EQ(server_.ReportOf("n1")->pool, "gpu");
  // Both stay, whoever says Hello last.
  server_.SetAssignment("n1", Pods({"b"}), "gpu");
  EXPECT_THAT(Uids(own.Read().delta().upserted_pods()), testing::ElementsAre("b"));
}

TEST_F(ControlServerTest, ANodeThatChangesItsPoolChangesItsAgent) {
  server_.SetConfig("gpu", {});
  server_.SetAssignment("n1", Pods({"a"}), "default");
  Agent first(server_.port(), trust_);
  first.Hello("n1", "default").Read();
  Agent second(server_.port(), trust_);
  EXPECT_EQ(second.Hello("n1", "gpu").Read().snapshot().pods_size(), 0);
  server_.SetAssignment("n1", Pods({"a"}), "gpu");
  EXPECT_THAT(first.Read().delta().removed_pod_uids(), testing::ElementsAre("a"));
  EXPECT_THAT(Uids(second.Read().delta().upserted_pods()), testing::ElementsAre("a"));
  EXPECT_FALSE(server_.ReportOf("n1")->received) << "what the other agent said is not its word";
}

TEST_F(ControlServerTest, AnotherPoolsAgentWorksUntilThatOfTheNodesPoolComes) {
  server_.SetConfig("gpu", {});
  server_.SetAssignment("n1", Pods({"a"}), "gpu");
  Agent other(server_.port(), trust_);
  EXPECT_THAT(Uids(other.Hello("n1", "default").Read().snapshot().pods()),
              testing::ElementsAre("a"));
  Agent own(server_.port(), trust_);
  EXPECT_THAT(Uids(own.Hello("n1", "gpu").Read().snapshot().pods()), testing::ElementsAre("a"));
  EXPECT_THAT(other.Read().delta().removed_pod_uids(), testing::ElementsAre("a"));
}

TEST_F(ControlServerTest, AReportOfAnIdleAgentCountsForNothing) {
  server_.SetConfig("gpu", {});
  server_.SetAssignment("n1", Pods({"a"}), "gpu");
  Agent own(server_.port(), trust_);
  own.Hello("n1", "gpu").Read();
  Agent other(server_.port(), trust_);
  other.Hello("n1", "default").Read();
  pb::Report report;
  report.mutable_node()->set_sampling(true);
  other.Report(report);
  other.Ack(7);  // read after the report
  EXPECT_EQ(other.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(server_.ReportOf("n1")->pool, "gpu");
  EXPECT_FALSE(server_.ReportOf("n1")->received);
}

TEST_F(ControlServerTest, AReconnectBeginsWithANewSnapshot) {
  server_.SetAssignment("n1", Pods({"a"}));
  { Agent(server_.port(), trust_).Hello("n1").Read(); }
  server_.SetAssignment("n1", Pods({"b"}));
  Agent agent(server_.port(), trust_);
  const pb::OperatorMessage message = agent.Hello("n1").Read();
  EXPECT_EQ(message.snapshot().version(), 1U);
  EXPECT_THAT(Uids(message.snapshot().pods()), testing::ElementsAre("b"));
}

TEST_F(ControlServerTest, EndsStreamsThatBreakTheProtocol) {
  Agent no_hello(server_.port(), trust_);
  no_hello.Report({});
  EXPECT_EQ(no_hello.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  Agent twice(server_.port(), trust_);
  twice.Hello("n1").Hello("n1");
  EXPECT_EQ(twice.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  Agent nameless(server_.port(), trust_);
  nameless.Authorize("Bearer n1").Hello("");
  EXPECT_EQ(nameless.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  Agent ahead(server_.port(), trust_);
  ahead.Hello("n2").Read();
  ahead.Ack(7);
  EXPECT_EQ(ahead.Finish().error_message(), "acknowledgement of version 7, the newest is 1");
}

TEST_F(ControlServerTest, AnAgentThatClosesItsSideIsGone) {
  Agent agent(server_.port(), trust_);
  agent.Hello("n1").Read();
  agent.CloseWriting();
  EXPECT_TRUE(agent.Finish().ok());
  EXPECT_TRUE(Await("n1", [](const plan::NodeReport& seen) { return !seen.connected; }));
}

TEST_F(ControlServerTest, ServesManyAgentsWhileEverythingChanges) {
  constexpr int kAgents = 50;
  constexpr int kRounds = 20;
  std::vector<std::thread> agents;
  agents.reserve(kAgents);
  for (int i = 0; i < kAgents; ++i) {
    agents.emplace_back([this, i] {
      Agent agent(server_.port(), trust_);
      agent.Hello("n" + std::to_string(i));
      std::map<std::string, pb::PodAssignment> pods;
      while (!pods.contains("last")) {
        const pb::OperatorMessage message = agent.Read();
        for (const pb::PodAssignment& pod : message.snapshot().pods())
          pods[pod.uid()] = pod;
        for (const pb::PodAssignment& pod : message.delta().upserted_pods())
          pods[pod.uid()] = pod;
        for (const std::string& uid : message.delta().removed_pod_uids())
          pods.erase(uid);
        if (!message.has_snapshot() && !message.has_delta()) break;  // Read has failed the test
        agent.Report({});
      }
      EXPECT_EQ(pods.size(), 1U);
    });
  }
  for (int round = 0; round <= kRounds; ++round) {
    const std::string uid = round == kRounds ? "last" : std::to_string(round);
    for (int i = 0; i < kAgents; ++i)
      server_.SetAssignment("n" + std::to_string(i), Pods({uid}));
  }
  for (std::thread& agent : agents)
    agent.join();
}

security::Admission AdmitAsN1(const std::string&, const std::stop_token&) {
  return {OkStatus(), "", {.node = "n1", .expires_at_ns = INT64_MAX}};
}

TEST(ControlServer, EndsWhileAgentsAreConnected) {
  FakeClock clock;
  Metrics metrics;
  const ChannelFiles files;
  auto server =
      std::make_unique<ControlServer>(clock, metrics, AdmitAsN1, [](const std::string&) {});
  server->SetConfig("default", {});
  server->SetCertificate(files.serving());
  ASSERT_TRUE(server->Listen("127.0.0.1:0").ok());
  Agent agent(server->port(), Trust(files.trusted()));
  agent.Hello("n1").Read();
  server.reset();
  EXPECT_FALSE(agent.Finish().ok());
}

TEST(ControlServer, SaysWhenItCannotListen) {
  FakeClock clock;
  Metrics metrics;
  const ChannelFiles files;
  ControlServer first(clock, metrics, AdmitAsN1, [](const std::string&) {});
  ControlServer second(clock, metrics, AdmitAsN1, [](const std::string&) {});
  first.SetCertificate(files.serving());
  second.SetCertificate(files.serving());
  ASSERT_TRUE(first.Listen("127.0.0.1:0").ok());
  EXPECT_EQ(second.Listen("127.0.0.1:" + std::to_string(first.port())).code(),
            StatusCode::kUnavailable);
}

}  // namespace
}  // namespace flamefleet::control
