// SPDX-License-Identifier: Apache-2.0
// The server against gRPC's own client, over a socket.
#include "operator/control/control_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "proto/fleet/control.grpc.pb.h"
#include "tests/fakes/fake_clock.h"

namespace flamefleet::control {
namespace {

namespace pb = fleet::v1alpha1;

constexpr std::chrono::seconds kDeadline{20};

// One agent. Every call fails rather than hang: the stream has a deadline.
class Agent {
 public:
  explicit Agent(int port)
      : stub_(pb::FleetControl::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                            grpc::InsecureChannelCredentials()))) {
    context_.set_deadline(std::chrono::system_clock::now() + kDeadline);
    stream_ = stub_->Connect(&context_);
  }
  ~Agent() {
    context_.TryCancel();
    if (!finished_) stream_->Finish();
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  Agent& Hello(const std::string& node, const std::string& pool = "default") {
    pb::AgentMessage message;
    message.mutable_hello()->set_node(node);
    message.mutable_hello()->set_pool(pool);
    stream_->Write(message);
    return *this;
  }
  void Ack(uint64_t version) {
    pb::AgentMessage message;
    message.mutable_ack()->set_version(version);
    stream_->Write(message);
  }
  void Report(const pb::Report& report) {
    pb::AgentMessage message;
    *message.mutable_report() = report;
    stream_->Write(message);
  }
  pb::OperatorMessage Read() {
    pb::OperatorMessage message;
    EXPECT_TRUE(stream_->Read(&message)) << "the stream ended";
    return message;
  }
  // Reads to the end.
  grpc::Status Finish() {
    pb::OperatorMessage message;
    while (stream_->Read(&message)) {
    }
    finished_ = true;
    return stream_->Finish();
  }
  void CloseWriting() { stream_->WritesDone(); }

 private:
  std::unique_ptr<pb::FleetControl::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<pb::AgentMessage, pb::OperatorMessage>> stream_;
  bool finished_ = false;
};

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest()
      : server_(clock_, metrics_, [this](const std::string& node) { OnChange(node); }) {
    server_.SetConfig("default", {19, {{"main", "http://store:4040"}}});
    const Status status = server_.Listen("127.0.0.1:0");
    EXPECT_TRUE(status.ok()) << status;
  }

  static plan::NodeAssignment Pods(const std::vector<std::string>& uids) {
    plan::NodeAssignment assignment;
    for (const std::string& uid : uids)
      assignment[uid] = {.uid = uid, .ns = "shop", .name = uid};
    return assignment;
  }

  void OnChange(const std::string&) {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  // Waits until the report of a node is as wanted.
  testing::AssertionResult Await(const std::string& node,
                                 const std::function<bool(const plan::NodeReport&)>& wanted) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, kDeadline, [&] {
      const auto report = server_.ReportOf(node);
      return report != nullptr && wanted(*report);
    });
    return came ? testing::AssertionSuccess()
                : testing::AssertionFailure() << "node " << node << " did not get there";
  }

  FakeClock clock_;
  Metrics metrics_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ControlServer server_;
};

std::vector<std::string> Uids(const google::protobuf::RepeatedPtrField<pb::PodAssignment>& pods) {
  std::vector<std::string> uids;
  for (const pb::PodAssignment& pod : pods)
    uids.push_back(pod.uid());
  return uids;
}

TEST_F(ControlServerTest, AnswersHelloWithASnapshot) {
  server_.SetAssignment("n1", Pods({"a", "b"}));
  Agent agent(server_.port());
  const pb::OperatorMessage message = agent.Hello("n1").Read();
  EXPECT_EQ(message.snapshot().version(), 1U);
  EXPECT_EQ(message.snapshot().config().backends(0).endpoint(), "http://store:4040");
  EXPECT_THAT(Uids(message.snapshot().pods()), testing::ElementsAre("a", "b"));
}

TEST_F(ControlServerTest, TellsANodeWithoutWorkToDoNothing) {
  Agent agent(server_.port());
  EXPECT_EQ(agent.Hello("n1").Read().snapshot().pods_size(), 0);
}

TEST_F(ControlServerTest, SendsChangesAsDeltas) {
  server_.SetAssignment("n1", Pods({"a", "b"}));
  Agent agent(server_.port());
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
  Agent one(server_.port());
  Agent two(server_.port());
  EXPECT_THAT(Uids(one.Hello("n1").Read().snapshot().pods()), testing::ElementsAre("a"));
  EXPECT_THAT(Uids(two.Hello("n2").Read().snapshot().pods()), testing::ElementsAre("b"));
}

TEST_F(ControlServerTest, ASlowAgentGetsTheNewestStateAndNoQueue) {
  Agent agent(server_.port());
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
  server_.SetConfig("gpu", {97, {}});
  Agent agent(server_.port());
  Agent other(server_.port());
  agent.Hello("n1").Read();
  EXPECT_EQ(other.Hello("n2", "gpu").Read().snapshot().config().sampling_frequency_hz(), 97U);
  server_.SetConfig("default", {49, {}});
  EXPECT_EQ(agent.Read().delta().config().sampling_frequency_hz(), 49U);
  server_.SetAssignment("n2", Pods({"a"}));
  EXPECT_FALSE(other.Read().delta().has_config());
}

TEST_F(ControlServerTest, AnAgentOfAPoolWithoutConfigurationWaits) {
  Agent agent(server_.port());
  agent.Hello("n1", "later");
  ASSERT_TRUE(Await("n1", [](const plan::NodeReport& report) { return report.connected; }));
  server_.SetConfig("later", {7, {}});
  EXPECT_EQ(agent.Read().snapshot().config().sampling_frequency_hz(), 7U);
}

TEST_F(ControlServerTest, KeepsTheNewestReport) {
  Agent agent(server_.port());
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
    Agent agent(server_.port());
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
  { Agent(server_.port()).Hello("n1").Read(); }
  ASSERT_TRUE(Await("n1", [](const plan::NodeReport& seen) { return !seen.connected; }));
  clock_.Advance(ControlServer::kForgetAfterNs);
  Agent agent(server_.port());
  agent.Hello("n2").Read();
  EXPECT_EQ(server_.ReportOf("n1"), nullptr);
}

TEST_F(ControlServerTest, TheNewerStreamOfANodeWins) {
  server_.SetAssignment("n1", Pods({"a"}));
  Agent older(server_.port());
  older.Hello("n1").Read();
  Agent newer(server_.port());
  EXPECT_THAT(Uids(newer.Hello("n1").Read().snapshot().pods()), testing::ElementsAre("a"));
  EXPECT_EQ(older.Finish().error_code(), grpc::StatusCode::ABORTED);
  EXPECT_TRUE(server_.ReportOf("n1")->connected);
  server_.SetAssignment("n1", Pods({}));
  EXPECT_THAT(newer.Read().delta().removed_pod_uids(), testing::ElementsAre("a"));
}

TEST_F(ControlServerTest, AReconnectBeginsWithANewSnapshot) {
  server_.SetAssignment("n1", Pods({"a"}));
  { Agent(server_.port()).Hello("n1").Read(); }
  server_.SetAssignment("n1", Pods({"b"}));
  Agent agent(server_.port());
  const pb::OperatorMessage message = agent.Hello("n1").Read();
  EXPECT_EQ(message.snapshot().version(), 1U);
  EXPECT_THAT(Uids(message.snapshot().pods()), testing::ElementsAre("b"));
}

TEST_F(ControlServerTest, EndsStreamsThatBreakTheProtocol) {
  Agent no_hello(server_.port());
  no_hello.Report({});
  EXPECT_EQ(no_hello.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  Agent twice(server_.port());
  twice.Hello("n1").Hello("n1");
  EXPECT_EQ(twice.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  Agent nameless(server_.port());
  nameless.Hello("");
  EXPECT_EQ(nameless.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  Agent ahead(server_.port());
  ahead.Hello("n2").Read();
  ahead.Ack(7);
  EXPECT_EQ(ahead.Finish().error_message(), "acknowledgement of version 7, the newest is 1");
}

TEST_F(ControlServerTest, AnAgentThatClosesItsSideIsGone) {
  Agent agent(server_.port());
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
      Agent agent(server_.port());
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

TEST(ControlServer, EndsWhileAgentsAreConnected) {
  FakeClock clock;
  Metrics metrics;
  auto server = std::make_unique<ControlServer>(clock, metrics, [](const std::string&) {});
  server->SetConfig("default", {});
  ASSERT_TRUE(server->Listen("127.0.0.1:0").ok());
  Agent agent(server->port());
  agent.Hello("n1").Read();
  server.reset();
  EXPECT_FALSE(agent.Finish().ok());
}

TEST(ControlServer, SaysWhenItCannotListen) {
  FakeClock clock;
  Metrics metrics;
  ControlServer first(clock, metrics, [](const std::string&) {});
  ControlServer second(clock, metrics, [](const std::string&) {});
  ASSERT_TRUE(first.Listen("127.0.0.1:0").ok());
  EXPECT_EQ(second.Listen("127.0.0.1:" + std::to_string(first.port())).code(),
            StatusCode::kUnavailable);
}

}  // namespace
}  // namespace flamefleet::control
