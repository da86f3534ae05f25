// SPDX-License-Identifier: Apache-2.0
#include "operator/control/node_configs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/operator/control/control_fixture.h"

namespace flamefleet::control {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

plan::AgentConfig SecretBackends(const std::string& secret = "s") {
  return {.sampling_frequency_hz = 19,
          .backends = {{.name = "a", .endpoint = "http://a", .authorization = "Bearer a-" + secret},
                       {.name = "b", .endpoint = "http://b", .authorization = "Bearer b-" + secret},
                       {.name = "open", .endpoint = "http://open"}}};
}

plan::NodeAssignment PodOf(const std::string& backend) {
  plan::NodeAssignment assignment;
  assignment["p"] = {.uid = "p", .ns = "shop", .name = "p"};
  assignment["p"].containers = {{.name = "app", .id = "c", .backend = backend}};
  return assignment;
}

TEST(BackendUse, IsWhatTheWorkOrTheReportNamesAndAWhileLonger) {
  plan::NodeAssignment assignment = PodOf("a");
  assignment["p"].pulls = {{.backend = "pulled"}};
  plan::NodeReport report;
  report.backlogs["waiting"] = {.profiles = 1};
  BackendUse use;
  EXPECT_THAT(use.Names(), IsEmpty());
  EXPECT_FALSE(use.IsDue(1000));
  use.Refresh(assignment, report, 0);
  EXPECT_THAT(use.Names(), ElementsAre("a", "pulled", "waiting"));
  use.Refresh(PodOf("a"), {}, BackendUse::kKeepNs - 1);
  EXPECT_THAT(use.Names(), ElementsAre("a", "pulled", "waiting"));
  EXPECT_TRUE(use.IsDue(BackendUse::kKeepNs));
  use.Refresh(PodOf("a"), {}, BackendUse::kKeepNs);
  EXPECT_THAT(use.Names(), ElementsAre("a"));
  EXPECT_FALSE(use.IsDue(BackendUse::kKeepNs));
}

TEST(NodeConfigs, NodesWithTheSameBackendsShareOne) {
  const auto all = std::make_shared<const plan::AgentConfig>(SecretBackends());
  NodeConfigs configs;
  EXPECT_EQ(configs.For(all, {"a", "b"}), all);
  const ConfigPtr of_a = configs.For(all, {"a"});
  EXPECT_EQ(configs.For(all, {"a", "open", "gone"}), of_a);
  EXPECT_EQ(of_a->sampling_frequency_hz, 19);
  EXPECT_EQ(of_a->backends[0], all->backends[0]);
  EXPECT_EQ(of_a->backends[1], (plan::Backend{.name = "b", .endpoint = "http://b", .hold = true}));
  EXPECT_EQ(of_a->backends[2], all->backends[2]) << "it has no credentials to withhold";
}

TEST(NodeConfigs, WithoutCredentialsThereIsOneForAll) {
  const auto all = std::make_shared<const plan::AgentConfig>(
      plan::AgentConfig{.backends = {{.name = "open", .endpoint = "http://open"}}});
  EXPECT_EQ(NodeConfigs().For(all, {}), all);
}

TEST(NodeConfigs, ManyDifferentNodesCostABoundedNumber) {
  plan::AgentConfig many;
  for (int i = 0; i < 200; ++i)
    many.backends.push_back({.name = std::to_string(i), .authorization = "s"});
  const auto all = std::make_shared<const plan::AgentConfig>(many);
  NodeConfigs configs;
  std::vector<std::weak_ptr<const plan::AgentConfig>> made;
  for (int i = 0; i < 200; ++i) {
    const ConfigPtr config = configs.For(all, {std::to_string(i)});
    EXPECT_FALSE(config->backends[static_cast<size_t>(i)].hold);
    made.push_back(config);
  }
  EXPECT_LE(std::ranges::count_if(made, [](const auto& config) { return !config.expired(); }),
            static_cast<long>(NodeConfigs::kMaxKept));
}

// What one agent was told of credentials: the backends that have them.
class CredentialsTest : public ControlServerTest {
 protected:
  CredentialsTest() { server_.SetConfig("default", SecretBackends()); }

  static std::vector<std::string> Known(const pb::AgentConfig& config) {
    std::vector<std::string> known;
    for (const pb::Backend& backend : config.backends()) {
      const bool withheld = backend.name() != "open" && backend.authorization().empty();
      EXPECT_EQ(backend.hold(), withheld) << backend.name();
      if (!backend.authorization().empty()) known.push_back(backend.name());
    }
    return known;
  }
};

TEST_F(CredentialsTest, ANodeGetsThoseOfItsOwnBackends) {
  server_.SetAssignment("n1", PodOf("a"));
  server_.SetAssignment("n2", PodOf("b"));
  Agent one(server_.port(), trust_);
  Agent two(server_.port(), trust_);
  Agent idle(server_.port(), trust_);
  EXPECT_THAT(Known(one.Hello("n1").Read().snapshot().config()), ElementsAre("a"));
  EXPECT_THAT(Known(two.Hello("n2").Read().snapshot().config()), ElementsAre("b"));
  EXPECT_THAT(Known(idle.Hello("n3").Read().snapshot().config()), IsEmpty());
  // With the work that needs them, in one message.
  server_.SetAssignment("n3", PodOf("b"));
  const pb::Delta delta = idle.Read().delta();
  EXPECT_THAT(Known(delta.config()), ElementsAre("b"));
  EXPECT_EQ(delta.upserted_pods_size(), 1);
}

TEST_F(CredentialsTest, AChangedSecretReachesThoseAloneWhoUseIt) {
  server_.SetAssignment("n1", PodOf("a"));
  Agent agent(server_.port(), trust_);
  Agent idle(server_.port(), trust_);
  agent.Hello("n1").Read();
  idle.Hello("n2").Read();
  server_.SetConfig("default", SecretBackends("new"));
  const pb::AgentConfig config = agent.Read().delta().config();
  EXPECT_EQ(config.backends(0).authorization(), "Bearer a-new");
  EXPECT_EQ(config.backends(1).authorization(), "");
  server_.SetAssignment("n2", Pods({"x"}));
  EXPECT_FALSE(idle.Read().delta().has_config());
}

TEST_F(CredentialsTest, WhatWaitsForAnotherBackendGetsThereAndThenTheyAreWithdrawn) {
  server_.SetAssignment("n1", PodOf("a"));
  Agent agent(server_.port(), trust_);
  agent.Hello("n1").Read();
  pb::Report report;
  report.add_backlogs()->set_backend("b");
  report.mutable_backlogs(0)->set_profiles(3);
  agent.Report(report);
  EXPECT_THAT(Known(agent.Read().delta().config()), ElementsAre("a", "b"));
  report.clear_backlogs();
  agent.Report(report);
  ASSERT_TRUE(Await("n1", [](const plan::NodeReport& seen) { return seen.backlogs.empty(); }));
  clock_.Advance(BackendUse::kKeepNs);
  EXPECT_THAT(Known(agent.Read().delta().config()), ElementsAre("a"));
}

TEST_F(CredentialsTest, TheLastProfilesForTheFormerBackendAreStillSent) {
  server_.SetAssignment("n1", PodOf("a"));
  Agent agent(server_.port(), trust_);
  agent.Hello("n1").Read();
  server_.SetAssignment("n1", PodOf("b"));
  EXPECT_THAT(Known(agent.Read().delta().config()), UnorderedElementsAre("a", "b"));
  clock_.Advance(BackendUse::kKeepNs);
  EXPECT_THAT(Known(agent.Read().delta().config()), ElementsAre("b"));
}

}  // namespace
}  // namespace flamefleet::control
