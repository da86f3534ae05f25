// SPDX-License-Identifier: Apache-2.0
// A snapshot in, the state of its pods and what is printed out.
#include "kubectl/pod_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kubectl/status_print.h"
#include "tests/operator/plan/builders.h"

namespace flamefleet::kubectl {
namespace {

using plan::RunningPod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PodStatusTest : public testing::Test {
 protected:
  PodStatusTest() {
    snapshot_.system_ns = "flamefleet-system";
    snapshot_.backends.emplace().push_back(plan::DefaultBackend());
    api::AgentPool pool;
    pool.meta.name = "linux";
    pool.status.observed_generation = 1;
    snapshot_.pools.emplace().push_back(pool);
    snapshot_.agents.emplace()["n1"] = {"linux"};
    api::ProfilingTarget target = plan::Target("pay", {{}});
    target.status.observed_generation = 1;
    snapshot_.targets = {target};
    snapshot_.pods = {RunningPod("p1"), RunningPod("p2")};
  }

  api::ProfilingTargetStatus& target() { return snapshot_.targets.front().status; }
  api::AgentPool& pool() { return snapshot_.pools->front(); }

  std::vector<PodStatus> Judged() {
    notes_.clear();
    return JudgePods(snapshot_, notes_);
  }
  PodStatus First() { return Judged().front(); }

  Snapshot snapshot_;
  std::vector<std::string> notes_;
};

TEST_F(PodStatusTest, CountsThatAgreeSayTheStateOfEveryPod) {
  target().pods = {.matched = 2, .profiled = 2};
  EXPECT_EQ(First().state, State::kProfiled);
  target().pods = {.matched = 2, .idle = 2};
  EXPECT_EQ(First().state, State::kIdle);
  target().pods = {.matched = 2, .waiting = 2};
  EXPECT_EQ(First().state, State::kWaiting);
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(PodStatusTest, CountsThatDifferAreToldAsCounts) {
  target().pods = {.matched = 2, .profiled = 1, .waiting = 1};
  const PodStatus pod = First();
  EXPECT_EQ(pod.state, State::kCollecting);
  EXPECT_EQ(pod.message,
            "of 2 pods of ProfilingTarget pay, 1 are profiled, 0 idle, 1 wait for a first profile");
}

TEST_F(PodStatusTest, AFailingPodHasTheReasonOfTheStatusAndTheOthersTheRest) {
  target().pods = {.matched = 2, .profiled = 1, .failing = 1};
  target().failing_pods = {{.name = "p2",
                            .profile = "cpu",
                            .reason = "BackendUnreachable",
                            .message = "refused",
                            .since_ns = 60'000'000'000}};
  const std::vector<PodStatus> pods = Judged();
  EXPECT_EQ(pods[0].state, State::kProfiled);
  EXPECT_EQ(pods[1].state, State::kFailing);
  EXPECT_EQ(StatusTable(pods, {}),
            "NAME   STATE      PROFILES   REASON               MESSAGE\n"
            "p1     Profiled   cpu        <none>               <none>\n"
            "p2     Failing    cpu        BackendUnreachable   cpu: refused\n");
  const std::string text = StatusText(pods[1], {"e"});
  EXPECT_THAT(text, HasSubstr("Pod:         shop/p2\nWorkload:    Deployment checkout\n"
                              "Node:        n1  (AgentPool linux)\nState:       Failing\n"));
  EXPECT_THAT(text, HasSubstr("Since:       1970-01-01T00:01:00Z\n"));
  EXPECT_THAT(text, HasSubstr("Profiles:\n  cpu: eBPF of container app, to default as service "
                              "checkout  [ProfilingTarget pay]\n"));
  EXPECT_THAT(text, HasSubstr("Events:\n  e\n"));
  EXPECT_EQ(StatusJson(pods, {}, {})["pods"][1]["profile"], "cpu");
}

TEST_F(PodStatusTest, AListThatIsCutSaysNothingOfTheOthers) {
  target().pods = {.matched = 20, .profiled = 5, .failing = 15};
  target().failing_pods = {{.name = "other", .reason = "Timeout"}};
  EXPECT_EQ(First().state, State::kUnknown);
}

TEST_F(PodStatusTest, WideHasNodePoolBackendAndWhoAsks) {
  target().pods = {.matched = 2, .profiled = 2};
  EXPECT_EQ(StatusTable({First()}, {.wide = true, .namespaces = true}),
            "NAMESPACE   NAME   STATE      PROFILES   NODE   POOL    BACKEND   ASKED-BY"
            "              REASON   MESSAGE\n"
            "shop        p1     Profiled   cpu        n1     linux   default   "
            "profilingtarget/pay   <none>   <none>\n");
}

TEST_F(PodStatusTest, WhatThePlanRefusesNeedsNoStatus) {
  snapshot_.targets = {plan::Target("pay", {{.type = ProfileType::kMemory}})};
  const PodStatus pod = First();
  EXPECT_EQ(pod.state, State::kFailing);
  EXPECT_EQ(pod.reason, "PortRequired");
  EXPECT_EQ(pod.profile, "memory");
}

TEST_F(PodStatusTest, APodThatNobodyAsksForIsNotRequestedAndAMisspeltAnnotationIsAProblem) {
  snapshot_.targets.clear();
  EXPECT_EQ(First().state, State::kNotRequested);
  snapshot_.pods = {RunningPod("p", {{"pyroscope.io/scrap", "true"}})};
  EXPECT_EQ(First().state, State::kFailing);
  EXPECT_EQ(First().reason, "UnknownAnnotation");
}

TEST_F(PodStatusTest, AnnotatedPodsAreJudgedByThePoolOfTheirNode) {
  snapshot_.targets.clear();
  snapshot_.pods = {RunningPod("p", {{"pyroscope.io/scrape", "true"}})};
  pool().status.annotated_pods = {.matched = 1, .failing = 1};
  pool().status.failing_pods = {
      {.ns = "shop", .name = "p", .profile = "cpu", .reason = "SamplingUnavailable"}};
  EXPECT_EQ(First().reason, "SamplingUnavailable");
  pool().status.failing_pods.front().ns = "other";
  EXPECT_EQ(First().state, State::kWaiting) << "a pod of that name elsewhere";
  pool().spec.opt_in.families = {};
  EXPECT_EQ(First().reason, "AnnotationsNotEnabled");
}

TEST_F(PodStatusTest, NamespacesThatThePoolDoesNotSelectMayNotOptIn) {
  snapshot_.targets.clear();
  snapshot_.pods = {RunningPod("p", {{"pyroscope.io/scrape", "true"}})};
  pool().spec.opt_in.namespaces.match_labels = {{"team", "a"}};
  EXPECT_EQ(First().reason, "AnnotationsNotEnabled");
  snapshot_.namespaces["shop"] = {{"team", "a"}};
  EXPECT_NE(First().reason, "AnnotationsNotEnabled");
}

TEST_F(PodStatusTest, ANodeWithoutAgentIsToldWhenAgentsMayBeRead) {
  target().pods = {.matched = 2, .profiled = 2};
  snapshot_.agents->clear();
  EXPECT_EQ(First().reason, "NoAgentPool");
  snapshot_.agents.reset();
  EXPECT_EQ(First().state, State::kProfiled);
  EXPECT_EQ(First().pool, "linux") << "the only one";
}

TEST_F(PodStatusTest, TheOldestPoolOfTheNodeDecides) {
  api::AgentPool younger = pool();
  younger.meta.name = "a-young";
  younger.meta.creation_ns = 5;
  pool().meta.creation_ns = 1;
  snapshot_.pools->push_back(younger);
  (*snapshot_.agents)["n1"] = {"a-young", "linux"};
  EXPECT_EQ(First().pool, "linux");
}

TEST_F(PodStatusTest, WithoutRightsToReadBackendsThoseThatAreNamedAreAssumed) {
  snapshot_.backends.reset();
  target().pods = {.matched = 2, .profiled = 2};
  EXPECT_EQ(First().state, State::kProfiled);
  snapshot_.targets.front().spec.backend = "central";
  EXPECT_EQ(First().plan.collections.front().backend, "central");
}

TEST_F(PodStatusTest, ABackendWithCredentialsIsNoProblemHere) {
  snapshot_.backends->front().spec.auth.bearer_token = api::SecretKey{"s", "k"};
  target().pods = {.matched = 2, .profiled = 2};
  EXPECT_EQ(First().state, State::kProfiled);
  snapshot_.backends = std::vector<api::ProfilingBackend>();
  EXPECT_EQ(First().reason, "NoBackend");
}

TEST_F(PodStatusTest, VetoPauseAndTheEndOfThePodAreStatesOfTheirOwn) {
  snapshot_.pods = {RunningPod("p", {{"pyroscope.io/scrape", "false"}})};
  EXPECT_EQ(First().state, State::kStopped);
  EXPECT_EQ(First().reason, "OptedOut");
  snapshot_.pods = {RunningPod("p")};
  snapshot_.targets.front().spec.paused = true;
  EXPECT_EQ(First().reason, "Paused");
  snapshot_.pods.front().phase = api::PodPhase::kSucceeded;
  EXPECT_EQ(First().state, State::kEnded);
}

TEST_F(PodStatusTest, AnOperatorThatIsSilentIsSaid) {
  target() = {};
  EXPECT_EQ(First().state, State::kUnknown);
  EXPECT_THAT(First().message, HasSubstr("has no status yet: does the operator run?"));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("the operator has not seen its last change")));
}

// As where the operator watches other namespaces only: it counts no pod of the target.
TEST_F(PodStatusTest, ATargetThatIsNotAcceptedFailsItsPods) {
  target().conditions = {{.type = "Accepted",
                          .status = "False",
                          .reason = "NamespaceNotWatched",
                          .message = "the operator watches pods of these namespaces only: a"}};
  EXPECT_EQ(First().state, State::kFailing);
  EXPECT_EQ(First().reason, "NamespaceNotWatched");
  EXPECT_EQ(First().message,
            "ProfilingTarget pay: the operator watches pods of these namespaces only: a");
  target().pods = {.matched = 2, .profiled = 2};
  target().conditions.front().status = "True";
  EXPECT_EQ(First().state, State::kProfiled);
}

TEST_F(PodStatusTest, ATargetWithoutPodsIsANote) {
  target().pods = {.matched = 2, .profiled = 2};
  snapshot_.targets.push_back(plan::Target("typo", {{}}));
  api::ProfilingTarget& typo = snapshot_.targets.back();
  typo.spec.selector.match_labels = {{"app", "nothing"}};
  typo.status.observed_generation = 1;
  typo.status.conditions = {{.type = "Ready", .status = "True", .reason = "NoPods"}};
  Judged();
  EXPECT_THAT(notes_,
              ElementsAre("ProfilingTarget shop/typo selects no pod: look at spec.selector"));
}

TEST_F(PodStatusTest, ANamespaceWithoutAgentsIsANote) {
  target().pods = {.matched = 2, .profiled = 2};
  snapshot_.agents->clear();
  Judged();
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("no agent runs in namespace flamefleet-system")));
  snapshot_.agents.reset();  // they may not be read
  Judged();
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(PodStatusTest, WhatTheNodeLacksIsToldOfItsPods) {
  target().pods = {.matched = 2, .profiled = 2};
  pool().status.problem_nodes = {{"n1", "CPUBudgetReached", "samples less"}};
  EXPECT_THAT(StatusText(First(), {}), HasSubstr("On node:     CPUBudgetReached: samples less\n"));
}

}  // namespace
}  // namespace flamefleet::kubectl
