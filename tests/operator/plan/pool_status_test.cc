// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "base/reasons.h"
#include "operator/plan/status.h"
#include "tests/operator/plan/builders.h"

namespace flamefleet::plan {
namespace {

using testing::HasSubstr;

constexpr int64_t kNow = 1'800'000'000 * kNanosPerSecond;

class PoolStatusTest : public testing::Test {
 protected:
  PoolStatusTest() {
    pool_.meta.name = "default";
    pool_.meta.generation = 1;
    daemon_set_ = {.observed_generation = 1, .desired = 2, .created = 2, .updated = 2, .ready = 2};
    daemon_set_.meta.generation = 1;
    for (NodeReport& report : reports_)
      report = {.connected = true, .received = true, .sampling = true};
  }
  api::AgentPoolStatus Status(bool settled = true) {
    PoolView view{.daemon_set = &daemon_set_,
                  .refusal = refusal_,
                  .refused_pods = event_.message.empty() ? nullptr : &event_,
                  .nodes = {{"n1", &reports_[0], true}, {"n2", &reports_[1], true, owner_of_n2_}}};
    for (const api::AgentPod& pod : agent_pods_)
      view.agent_pods.push_back(&pod);
    view.host_problem = host_problem_;
    view.selector_unread = selector_unread_;
    std::vector<PodView> pods;
    for (size_t i = 0; i < pods_.size(); ++i)
      pods.push_back({&pods_[i], &plans_[i], {true, &reports_[0]}});
    const NodePods sum = SumUpPods(pods, kNow);
    view.pods = {&sum};
    return PoolStatus(pool_, view, {kNow, settled});
  }
  void AddPod(api::Pod pod, bool all_pods = false) {
    const BackendTable backends = DefaultBackends();
    plans_.push_back(PlanPod(
        {.pod = pod, .families = {true, true}, .backends = backends, .all_pods = all_pods}));
    pods_.push_back(std::move(pod));
  }

  // Empty when there is no such condition.
  api::Condition Find(const std::string& type) {
    const std::vector<api::Condition> conditions = Status().conditions;
    const auto found = std::ranges::find(conditions, type, &api::Condition::type);
    return found == conditions.end() ? api::Condition{} : *found;
  }
  api::Condition Ready() { return Find("Ready"); }
  // What kstatus makes of the conditions.
  std::string Progress() {
    return Find("Stalled").status == "True"       ? "Failed"
           : Find("Reconciling").status == "True" ? "InProgress"
           : Ready().status == "True"             ? "Current"
                                                  : "";
  }

  api::AgentPool pool_;
  api::Workload daemon_set_;
  std::string refusal_;
  api::ObjectEvent event_;
  std::deque<api::AgentPod> agent_pods_;
  std::string owner_of_n2_;
  std::optional<Problem> host_problem_;
  bool selector_unread_ = false;
  NodeReport reports_[2];
  std::deque<api::Pod> pods_;
  std::deque<PodPlan> plans_;
};

TEST_F(PoolStatusTest, IsReadyWhenEveryNodeSamples) {
  const api::AgentPoolStatus status = Status();
  EXPECT_EQ(status.nodes, (api::AgentPoolStatus::Nodes{2, 2, 2, 0}));
  EXPECT_EQ(Find("Accepted").status, "True");
  EXPECT_EQ(Ready().status, "True");
  EXPECT_EQ(Ready().message, "2 of 2 agents sample");
  EXPECT_EQ(status.conditions.size(), 2U);
}

TEST_F(PoolStatusTest, SaysThatItsNamespaceSelectorCannotBeJudged) {
  selector_unread_ = true;
  EXPECT_EQ(Find("Degraded").reason, "NamespacesNotRead");
  EXPECT_EQ(Ready().status, "True");
}

TEST_F(PoolStatusTest, NamesTheNodeThatDoesNotSample) {
  reports_[1].sampling = false;
  reports_[1].problems = {{"SamplingUnavailable", "CAP_BPF is missing"}};
  const api::AgentPoolStatus status = Status();
  EXPECT_EQ(status.nodes.profiling, 1);
  EXPECT_THAT(status.problem_nodes, testing::ElementsAre(api::ProblemNode{
                                        "n2", "SamplingUnavailable", "CAP_BPF is missing"}));
  EXPECT_EQ(Ready().message, "1 of 2 agents sample; node n2: CAP_BPF is missing");
}

TEST_F(PoolStatusTest, WhatAgentsThatSampleCannotDoIsAConditionWithTheirNodes) {
  reports_[0].problems = {{"ProfilesIncomplete", "CAP_SYSLOG is missing"}};
  reports_[1].problems = {{"ProfilesIncomplete", "CAP_SYS_PTRACE is missing"},
                          {"ProfilesIncomplete", "CAP_SYSLOG is missing"}};
  const api::AgentPoolStatus status = Status();
  EXPECT_EQ(status.nodes, (api::AgentPoolStatus::Nodes{2, 2, 2, 2}));
  EXPECT_EQ(Ready().status, "True");
  EXPECT_EQ(Progress(), "Current");
  EXPECT_EQ(Find("Degraded").status, "True");
  EXPECT_EQ(Find("Degraded").reason, reasons::kProfilesIncomplete);
  EXPECT_EQ(Find("Degraded").message,
            "on n1, n2: CAP_SYSLOG is missing; on n2: CAP_SYS_PTRACE is missing");
  reports_[0].problems[0].reason = "SamplingSlowed";
  EXPECT_EQ(Find("Degraded").reason, "SeveralReasons");
  // An agent that does not sample at all is another matter.
  reports_[0].sampling = reports_[1].sampling = false;
  EXPECT_EQ(Find("Degraded").status, "");
}

TEST_F(PoolStatusTest, TheNodesOfOneLimitAreABoundedList) {
  PoolView view{.daemon_set = &daemon_set_};
  reports_[0].problems = {{"ProfilesIncomplete", "CAP_SYSLOG is missing"}};
  for (int i = 100; i < 200; ++i)
    view.nodes.push_back({"n" + std::to_string(i), &reports_[0], true});
  for (const api::Condition& condition : PoolStatus(pool_, view, {kNow, true}).conditions) {
    if (condition.type != "Degraded") continue;
    EXPECT_THAT(condition.message, HasSubstr("on n100, n101"));
    EXPECT_THAT(condition.message, HasSubstr("n109 and 90 more: CAP_SYSLOG is missing"));
  }
}

TEST_F(PoolStatusTest, NamesTheNodeWhoseAgentIsNotConnected) {
  reports_[0] = {.connected = false,
                 .disconnected_since_ns = kNow - kAgentGraceNs,
                 .received = true,
                 .sampling = true};
  EXPECT_EQ(Ready().reason, reasons::kAgentNotConnected);
}

TEST_F(PoolStatusTest, IsNotReadyDuringARollout) {
  daemon_set_.updated = 1;
  EXPECT_EQ(Ready().reason, "RollingOut");
  daemon_set_.meta.generation = 2;
  EXPECT_EQ(Ready().reason, "RollingOut");
}

TEST_F(PoolStatusTest, SaysWhenNoNodeMatches) {
  daemon_set_.desired = daemon_set_.updated = daemon_set_.ready = 0;
  EXPECT_EQ(Ready().reason, "NoNodes");
}

TEST_F(PoolStatusTest, CountsPodsThatAnnotationsOptIn) {
  AddPod(RunningPod("a", {{"pyroscope.io/scrape", "true"}}));
  AddPod(RunningPod("b", {{"pyroscope.io/scrape", "yes"}}));
  AddPod(RunningPod("c", {{"pyroscope.io/scrap", "true"}}));
  AddPod(RunningPod("d", {{"pyroscope.io/scrape", "false"}}));
  reports_[0].collections[{"uid-a", "app", ProfileType::kCpu}] = {
      .state = CollectionState::kDelivering, .last_delivered_ns = kNow};
  const api::AgentPoolStatus status = Status();
  EXPECT_EQ(status.annotated_pods, (api::PodCounts{.matched = 2, .profiled = 1, .failing = 1}));
  ASSERT_EQ(status.failing_pods.size(), 1U);
  EXPECT_EQ(status.failing_pods[0].ns, "shop");
  EXPECT_EQ(status.failing_pods[0].reason, reasons::kInvalidAnnotation);
  ASSERT_EQ(status.warnings.size(), 1U);
  EXPECT_EQ(status.warnings[0].name, "c");
}

TEST_F(PoolStatusTest, CountsPodsThatItsScopeOptsInButNotThoseOfTargets) {
  AddPod(RunningPod("a"), /*all_pods=*/true);
  AddPod(RunningPod("b"));
  reports_[0].collections[{"uid-a", "app", ProfileType::kCpu}] = {
      .state = CollectionState::kDelivering, .last_delivered_ns = kNow};
  EXPECT_EQ(Status().annotated_pods, (api::PodCounts{.matched = 1, .profiled = 1}));
}

TEST_F(PoolStatusTest, ExactlyOneOfCurrentInProgressAndFailedIsSaid) {
  EXPECT_EQ(Progress(), "Current");
  daemon_set_.updated = 1;
  EXPECT_EQ(Progress(), "InProgress");
  daemon_set_.desired = 0;
  EXPECT_EQ(Progress(), "InProgress");
  refusal_ = "spec.template: invalid";
  EXPECT_EQ(Progress(), "Failed");
}

TEST_F(PoolStatusTest, ADaemonSetThatTheApiServerRefusesIsNotAccepted) {
  refusal_ = "spec.template.spec.affinity: Invalid value";
  EXPECT_EQ(Find("Accepted").status, "False");
  EXPECT_EQ(Ready().reason, "DaemonSetRefused");
  EXPECT_THAT(Ready().message, HasSubstr("spec.affinity: Invalid value"));
}

TEST_F(PoolStatusTest, ANodeOfAnOlderPoolIsAConflict) {
  owner_of_n2_ = "older";
  const api::AgentPoolStatus status = Status();
  EXPECT_EQ(status.nodes.profiling, 1);
  EXPECT_EQ(status.nodes.degraded, 1);
  EXPECT_THAT(status.problem_nodes,
              testing::ElementsAre(api::ProblemNode{
                  "n2", "Conflict", "the node belongs to the older AgentPool older"}));
  EXPECT_EQ(Find("Conflict").status, "True");
  EXPECT_THAT(Find("Conflict").message, HasSubstr("1 node belongs to an older AgentPool: n2;"));
  EXPECT_EQ(Ready().reason, "Conflict");
  EXPECT_EQ(Progress(), "Failed");
}

TEST_F(PoolStatusTest, SaysThatPodSecurityKeepsTheAgentsOut) {
  event_.message =
      "Error creating: pods \"x\" is forbidden: violates PodSecurity \"baseline:latest\"";
  EXPECT_EQ(Ready().status, "True") << "an old event is no problem of now";
  daemon_set_.created = 1;
  daemon_set_.meta.ns = "profiling";
  EXPECT_EQ(Ready().reason, "PodsNotCreated");
  EXPECT_THAT(Ready().message, HasSubstr("namespace profiling does not admit the agents"));
  EXPECT_THAT(Ready().message, HasSubstr("enforce=privileged"));
  EXPECT_EQ(Progress(), "Failed");
  agent_pods_ = {{.node = "n1"}};
  agent_pods_[0].meta.creation_ns = event_.last_ns;
  EXPECT_NE(Ready().reason, "PodsNotCreated") << "pods are created again";
}

struct PodCase {
  std::string reason;
  std::string message;
  std::string want;
  std::string words;
};

TEST_F(PoolStatusTest, SaysInPlainWordsWhyAPodDoesNotRun) {
  const PodCase cases[] = {
      {"Unschedulable", "0/2 nodes are available: 1 Insufficient memory.", "AgentNotScheduled",
       "no room for the agent"},
      {"ImagePullBackOff", "Back-off pulling image \"x:1\"", "ImageNotPulled", "spec.image"},
      {"CrashLoopBackOff", "OOMKilled, exit code 137", "AgentCrashes",
       "more memory than spec.resources.limits.memory"},
      {"CrashLoopBackOff", "Error, exit code 1", "AgentCrashes", "look at its log"},
      {"CreateContainerConfigError", "secret not found", "AgentNotStarted",
       "(CreateContainerConfigError): secret not found"},
  };
  reports_[1].received = false;
  for (const PodCase& row : cases) {
    agent_pods_ = {{.pool = "default", .node = "n2", .reason = row.reason, .message = row.message}};
    EXPECT_EQ(Ready().reason, row.want);
    EXPECT_THAT(Ready().message, HasSubstr("1 of 2 agents sample; node n2: "));
    EXPECT_THAT(Ready().message, HasSubstr(row.words));
    EXPECT_THAT(Ready().message, HasSubstr(row.message));
    EXPECT_EQ(Progress(), "Failed");
  }
}

TEST_F(PoolStatusTest, APodThatHasNoNodeYetIsListedWhereItIsMeantToRun) {
  agent_pods_ = {{.pool = "default", .node = "n3", .reason = "Unschedulable"}};
  ASSERT_EQ(Status().problem_nodes.size(), 1U);
  EXPECT_EQ(Status().problem_nodes[0].name, "n3");
}

TEST_F(PoolStatusTest, ListsAtMostTwentyNodesAndCountsAll) {
  for (int i = 0; i < 30; ++i) {
    agent_pods_.push_back({.node = "x" + std::to_string(i), .reason = "Unschedulable"});
  }
  EXPECT_EQ(Status().problem_nodes.size(), kMaxProblemNodes);
  EXPECT_EQ(Status().nodes.degraded, 30);
}

TEST_F(PoolStatusTest, SaysWhyProcessesOfTheNodesAreNotProfiled) {
  host_problem_ = Problem{reasons::kNoBackend, "no ProfilingBackend says default: true"};
  EXPECT_EQ(Find("Degraded").reason, "NoBackend");
  EXPECT_EQ(Find("Degraded").message,
            "processes of the nodes are not profiled: no ProfilingBackend says default: true");
  host_problem_.reset();
  EXPECT_EQ(Find("Degraded").status, "");
  reports_[0].collections[CollectionId()] = {
      .state = CollectionState::kFailing, .reason = "BackendUnreachable", .message = "refused"};
  EXPECT_EQ(Find("Degraded").reason, "BackendUnreachable");
  EXPECT_EQ(Find("Degraded").message, "on n1: profiles of the node's processes: refused");
  ASSERT_EQ(Status().problem_nodes.size(), 1U);
  EXPECT_EQ(Status().problem_nodes[0].reason, "BackendUnreachable");
  EXPECT_EQ(Ready().status, "True");
}

}  // namespace
}  // namespace flamefleet::plan
