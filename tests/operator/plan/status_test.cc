// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/reasons.h"
#include "tests/operator/plan/builders.h"

namespace flamefleet::plan {
namespace {

constexpr int64_t kNow = 1'800'000'000 * kNanosPerSecond;
constexpr int64_t kMinute = 60 * kNanosPerSecond;

// One target `t` that wants cpu, its pods, and the report of node n1.
class TargetStatusTest : public testing::Test {
 protected:
  TargetStatusTest() {
    report_.connected = true;
    report_.received = true;
    report_.sampling = true;
  }

  // A pod of which the agent says `health`.
  api::Pod& AddPod(const std::string& name, std::optional<CollectionHealth> health,
                   ProfileType type = ProfileType::kCpu) {
    pods_.push_back(RunningPod(name));
    if (health) report_.collections[{"uid-" + name, "app", type}] = *std::move(health);
    return pods_.back();
  }

  api::ProfilingTargetStatus Status(int64_t now_ns = kNow, bool settled = true) {
    std::deque<PodPlan> plans;
    std::vector<PodView> views;
    for (const api::Pod& pod : pods_) {
      plans.push_back(PlanPod(
          {.pod = pod, .targets = {&target_}, .families = {true, true}, .backends = backends_}));
      views.push_back({&pod, &plans.back(), {has_agent_pod_, has_report_ ? &report_ : nullptr}});
    }
    return TargetStatus(target_, views, backends_, {now_ns, settled});
  }

  static api::Condition Find(const std::vector<api::Condition>& conditions,
                             const std::string& type) {
    const auto found = std::ranges::find(conditions, type, &api::Condition::type);
    return found == conditions.end() ? api::Condition{} : *found;
  }
  // Without status when there is none of this type.
  api::Condition Condition(const std::string& type, int64_t now_ns = kNow) {
    return Find(Status(now_ns).conditions, type);
  }
  api::Condition Ready(int64_t now_ns = kNow) { return Condition("Ready", now_ns); }

  api::ProfilingTarget target_ = Target("t", {{ProfileType::kCpu}});
  BackendTable backends_ = DefaultBackends();
  std::deque<api::Pod> pods_;
  NodeReport report_;
  bool has_agent_pod_ = true;
  bool has_report_ = true;
};

CollectionHealth Delivering(int64_t last_ns = kNow) {
  return {.state = CollectionState::kDelivering, .last_delivered_ns = last_ns};
}
CollectionHealth Failing(std::string_view reason, int64_t since_ns) {
  return {.state = CollectionState::kFailing,
          .reason = std::string(reason),
          .message = "why",
          .failing_since_ns = since_ns};
}

TEST_F(TargetStatusTest, IsReadyOnceAllPodsWereDelivered) {
  AddPod("a", Delivering());
  AddPod("b", Delivering());
  const api::ProfilingTargetStatus status = Status();
  EXPECT_EQ(status.pods, (api::PodCounts{.matched = 2, .profiled = 2}));
  EXPECT_EQ(status.nodes, (api::ProfilingTargetStatus::Nodes{1, 1}));
  EXPECT_EQ(Ready().status, "True");
  EXPECT_EQ(Ready().message, "profiles of 2 of 2 pods reach the backend");
}

TEST_F(TargetStatusTest, IsNotReadyBecauseOfAPlanAlone) {
  AddPod("a", std::nullopt);
  EXPECT_EQ(Status().pods, (api::PodCounts{.matched = 1, .waiting = 1}));
  EXPECT_EQ(Ready().status, "False");
  EXPECT_EQ(Ready().reason, reasons::kWaitingForSamples);
}

TEST_F(TargetStatusTest, APodThatNeverUsedCpuDoesNotHoldItsTargetBack) {
  AddPod("a", CollectionHealth{.state = CollectionState::kIdle});
  EXPECT_EQ(Status().pods, (api::PodCounts{.matched = 1, .idle = 1}));
  EXPECT_EQ(Ready().status, "True");
  EXPECT_EQ(Ready().reason, "NothingToDeliver");
  EXPECT_EQ(Condition("Delivering").status, "False");
  AddPod("b", Delivering());
  EXPECT_EQ(Ready().reason, "AllPodsProfiled");
  EXPECT_EQ(Ready().message,
            "profiles of 1 of 2 pods reach the backend; 1 had nothing to deliver yet");
}

TEST_F(TargetStatusTest, DeliveringIsTrueWhileAnythingArrives) {
  AddPod("a", Failing(reasons::kTimeout, kNow));
  EXPECT_EQ(Condition("Delivering").reason, reasons::kTimeout);
  AddPod("b", Delivering());
  EXPECT_EQ(Ready().status, "False");
  EXPECT_EQ(Condition("Delivering").status, "True");
  report_.collections.at({"uid-b", "app", ProfileType::kCpu}).state = CollectionState::kIdle;
  EXPECT_EQ(Condition("Delivering").status, "False");
}

TEST_F(TargetStatusTest, ReconcilingIsThereOnlyWhileSomethingIsUnderWay) {
  AddPod("a", std::nullopt);
  EXPECT_EQ(Condition("Reconciling").status, "True");
  EXPECT_EQ(Condition("Stalled").status, "");
  report_.collections[{"uid-a", "app", ProfileType::kCpu}] = Delivering();
  EXPECT_EQ(Condition("Reconciling").status, "");
  // A pod that fails may recover by itself: neither under way nor stalled.
  report_.collections[{"uid-a", "app", ProfileType::kCpu}] = Failing(reasons::kTimeout, kNow);
  EXPECT_EQ(Condition("Reconciling").status, "");
  EXPECT_EQ(Condition("Stalled").status, "");
}

TEST_F(TargetStatusTest, WhatCannotBeServedIsStalledAfterAWhile) {
  AddPod("a", std::nullopt);
  target_.spec.backend = "none";
  target_.status = Status(kNow);
  EXPECT_EQ(Condition("Accepted").reason, reasons::kNoBackend);
  EXPECT_EQ(Condition("Reconciling", kNow + kStalledAfterNs - 1).reason, reasons::kNoBackend);
  EXPECT_EQ(Condition("Stalled", kNow + kStalledAfterNs - 1).status, "");
  EXPECT_EQ(Condition("Stalled", kNow + kStalledAfterNs).status, "True");
  EXPECT_EQ(Condition("Reconciling", kNow + kStalledAfterNs).status, "");
}

TEST_F(TargetStatusTest, APausedTargetIsNeitherUnderWayNorStalled) {
  AddPod("a", std::nullopt);
  target_.spec.paused = true;
  EXPECT_EQ(Ready().reason, reasons::kPaused);
  EXPECT_EQ(Condition("Delivering").reason, reasons::kPaused);
  EXPECT_EQ(Condition("Reconciling").status, "");
  EXPECT_EQ(Condition("Stalled").status, "");
}

TEST_F(TargetStatusTest, AnIdlePodThatWasDeliveredStaysProfiled) {
  AddPod("a",
         CollectionHealth{.state = CollectionState::kIdle, .last_delivered_ns = kNow - kMinute});
  EXPECT_EQ(Ready().status, "True");
}

TEST_F(TargetStatusTest, AnIdleSidecarDoesNotHoldItsPodBack) {
  api::Pod& pod = AddPod("a", Delivering());
  pod.containers.push_back(MainContainer("sidecar"));
  report_.collections[{"uid-a", "sidecar", ProfileType::kCpu}] = {.state = CollectionState::kIdle};
  EXPECT_EQ(Ready().status, "True");
}

TEST_F(TargetStatusTest, TellsWhyPodsFailTheOldestFirst) {
  AddPod("a", Delivering());
  AddPod("b", Failing(reasons::kBackendUnreachable, kNow - kMinute));
  AddPod("c", Failing(reasons::kBackendUnreachable, kNow - 2 * kMinute));
  const api::ProfilingTargetStatus status = Status();
  EXPECT_EQ(status.pods, (api::PodCounts{.matched = 3, .profiled = 1, .failing = 2}));
  ASSERT_EQ(status.failing_pods.size(), 2U);
  EXPECT_EQ(status.failing_pods[0], (api::FailingPod{"", "c", "n1", "cpu", "BackendUnreachable",
                                                     "app: why", kNow - 2 * kMinute}));
  EXPECT_EQ(Ready().reason, reasons::kBackendUnreachable);
  EXPECT_EQ(Ready().message,
            "2 of 3 pods failing, the longest is c (cpu): BackendUnreachable: app: why");
}

TEST_F(TargetStatusTest, NamesNoSingleReasonWhenThereAreSeveral) {
  AddPod("a", Failing(reasons::kBackendUnreachable, kNow));
  AddPod("b", Failing(reasons::kTimeout, kNow));
  EXPECT_EQ(Ready().reason, "SeveralReasons");
}

TEST_F(TargetStatusTest, ListsAtMostTenFailingPods) {
  for (int i = 0; i < 12; ++i)
    AddPod("p" + std::to_string(i), Failing(reasons::kTimeout, kNow));
  EXPECT_EQ(Status().failing_pods.size(), 10U);
  EXPECT_EQ(Status().pods.failing, 12);
}

TEST_F(TargetStatusTest, ARefusalFailsThePodWhateverTheAgentSays) {
  target_.spec.profiles.push_back({ProfileType::kMemory});
  AddPod("a", Delivering());
  const api::ProfilingTargetStatus status = Status();
  ASSERT_EQ(status.failing_pods.size(), 1U);
  EXPECT_EQ(status.failing_pods[0].profile, "memory");
  EXPECT_EQ(status.failing_pods[0].reason, reasons::kPortRequired);
}

TEST_F(TargetStatusTest, FailuresKeepTheTimeWhenTheyBegan) {
  target_.spec.profiles = {{ProfileType::kMemory}};
  AddPod("a", std::nullopt);
  target_.status = Status(kNow);
  EXPECT_EQ(Status(kNow + kMinute).failing_pods.at(0).since_ns, kNow);
}

TEST_F(TargetStatusTest, NothingChangedMeansAnEqualStatus) {
  AddPod("a", Delivering(kNow));
  AddPod("b", Failing(reasons::kTimeout, kNow - kMinute));
  target_.status = Status(kNow);
  report_.collections.at({"uid-a", "app", ProfileType::kCpu}).last_delivered_ns = kNow + kMinute;
  EXPECT_EQ(Status(kNow + kMinute), target_.status);
}

TEST_F(TargetStatusTest, LastProfileTimeMovesInStepsOfMinutes) {
  AddPod("a", Delivering(kNow + 1));
  target_.status = Status(kNow);
  EXPECT_EQ(target_.status.last_profile_ns, kNow);
  report_.collections.at({"uid-a", "app", ProfileType::kCpu}).last_delivered_ns =
      kNow + 5 * kMinute;
  EXPECT_EQ(Status(kNow + 5 * kMinute).last_profile_ns, kNow + 5 * kMinute);
}

TEST_F(TargetStatusTest, TransitionTimeMovesOnlyWithAFlip) {
  AddPod("a", std::nullopt);
  target_.status = Status(kNow);
  target_.meta.generation = 2;
  report_.collections[{"uid-a", "app", ProfileType::kCpu}] = Failing(reasons::kTimeout, kNow);
  EXPECT_EQ(Ready(kNow + kMinute).last_transition_ns, kNow);
  EXPECT_EQ(Ready(kNow + kMinute).observed_generation, 2);
  report_.collections[{"uid-a", "app", ProfileType::kCpu}] = Delivering();
  EXPECT_EQ(Ready(kNow + kMinute).last_transition_ns, kNow + kMinute);
}

TEST_F(TargetStatusTest, ANodeWithoutAgentIsAReason) {
  has_agent_pod_ = false;
  AddPod("a", std::nullopt);
  EXPECT_EQ(Ready().reason, reasons::kNoAgentPool);
}

TEST_F(TargetStatusTest, AnAgentMayBeAwayForAMoment) {
  AddPod("a", Delivering());
  report_.connected = false;
  report_.disconnected_since_ns = kNow;
  EXPECT_EQ(Ready(kNow + kAgentGraceNs - 1).status, "True");
  EXPECT_EQ(Ready(kNow + kAgentGraceNs).reason, reasons::kAgentNotConnected);
}

TEST_F(TargetStatusTest, AnAgentThatIsReplacedIsNoReasonForAMoment) {
  AddPod("a", Delivering());
  has_agent_pod_ = false;
  report_.connected = false;
  report_.disconnected_since_ns = kNow;
  EXPECT_EQ(Ready(kNow + kAgentGraceNs - 1).status, "True");
  EXPECT_EQ(Ready(kNow + kAgentGraceNs).reason, reasons::kNoAgentPool);
}

TEST_F(TargetStatusTest, StaysAsItIsWhileAgentsComeBackToANewOperator) {
  AddPod("a", Delivering());
  target_.status = Status(kNow);
  has_report_ = false;
  EXPECT_EQ(Status(kNow + kMinute, /*settled=*/false), target_.status);
  EXPECT_EQ(Status(kNow + kMinute, /*settled=*/true).pods.failing, 1);
}

TEST_F(TargetStatusTest, VetoedPodsAreNotCountedButMentioned) {
  AddPod("a", Delivering());
  AddPod("b", std::nullopt).annotations = {{"pyroscope.io/scrape", "false"}};
  EXPECT_EQ(Status().pods.matched, 1);
  EXPECT_EQ(Ready().message, "profiles of 1 of 1 pod reach the backend; 1 pod opted out or paused");
}

TEST_F(TargetStatusTest, SaysWhenNoPodMatches) {
  EXPECT_EQ(Ready().reason, "NoPods");
}

TEST_F(TargetStatusTest, SaysThatItIsPaused) {
  target_.spec.paused = true;
  AddPod("a", Delivering());
  EXPECT_EQ(Ready().reason, reasons::kPaused);
}

TEST_F(TargetStatusTest, WhoseNamespaceIsNotWatchedIsToldSoWhateverElseIsWrong) {
  target_.spec.backend = "missing";
  const auto status = TargetStatus(target_, {}, backends_, {kNow, true}, "only a and b");
  for (const char* type : {"Accepted", "Ready", "Delivering"}) {
    EXPECT_EQ(Find(status.conditions, type).reason, "NamespaceNotWatched") << type;
    EXPECT_EQ(Find(status.conditions, type).message, "only a and b") << type;
  }
}

TEST_F(TargetStatusTest, AMissingBackendIsNotAccepted) {
  target_.spec.backend = "missing";
  AddPod("a", Delivering());
  EXPECT_EQ(Find(Status().conditions, "Accepted").reason, reasons::kNoBackend);
  EXPECT_EQ(Ready().message, "spec.backendRef.name: there is no ProfilingBackend \"missing\"");
}

TEST_F(TargetStatusTest, AddsUpHowStacksEndInAllPods) {
  CollectionHealth a = Delivering();
  a.stacks = {{"complete", 5990}, {"no_table", 3}, {"no_user_stack", 100'000}};
  CollectionHealth b = Delivering();
  b.stacks = {{"complete", 3990}, {"no_table", 3}, {"depth_limit", 4}, {"of_a_newer_agent", 10}};
  AddPod("a", a);
  AddPod("b", b);
  EXPECT_EQ(Status().stacks, (api::ProfilingTargetStatus::Stacks{99, "of_a_newer_agent"}));
}

TEST_F(TargetStatusTest, SaysNothingOfFewStacks) {
  CollectionHealth health = Delivering();
  health.stacks = {{"complete", kLeastStacks - 1}, {"no_user_stack", 1}};
  AddPod("a", health);
  EXPECT_EQ(Status().stacks, std::nullopt);
}

TEST_F(TargetStatusTest, PendingPodsAreWaitedFor) {
  AddPod("a", std::nullopt).phase = api::PodPhase::kPending;
  EXPECT_EQ(Status().pods, (api::PodCounts{.matched = 1, .waiting = 1}));
}

TEST_F(TargetStatusTest, ShowsAnnotationsThatNobodyReads) {
  AddPod("a", Delivering()).annotations = {{"pyroscope.io/scrap", "true"}};
  ASSERT_EQ(Status().warnings.size(), 1U);
  EXPECT_EQ(Status().warnings[0].message, "pyroscope.io/scrap: nobody reads this key");
  EXPECT_EQ(Ready().status, "True");
}

TEST_F(TargetStatusTest, BoundsMessagesBetweenCharacters) {
  CollectionHealth health = Failing(reasons::kTimeout, kNow);
  health.message.clear();
  while (health.message.size() < 2 * kMaxMessage)
    health.message += "\u00e9";
  AddPod("a", health);
  const std::string message = Status().failing_pods.at(0).message;
  EXPECT_LE(message.size(), kMaxMessage);
  EXPECT_TRUE(message.ends_with("\u00e9..."));
}

class BackendStatusTest : public testing::Test {
 protected:
  BackendStatusTest() {
    workload_.ready = 1;
    view_.workload = &workload_;
    view_.default_name = "default";
  }
  api::Condition Ready() { return Find("Ready"); }
  api::Condition Find(const std::string& type) {
    for (const api::Condition& condition : BackendStatus(backend_, view_, {kNow}).conditions) {
      if (condition.type == type) return condition;
    }
    ADD_FAILURE() << "no condition " << type;
    return {};
  }

  api::ProfilingBackend backend_ = DefaultBackend();
  api::Workload workload_;
  BackendView view_;
};

TEST_F(BackendStatusTest, AManagedStoreIsReadyOnceItsPodIs) {
  EXPECT_EQ(Ready().status, "True");
  workload_.ready = 0;
  EXPECT_EQ(Ready().reason, "StoreNotAvailable");
}

TEST_F(BackendStatusTest, NothingIsKnownOfABackendThatNobodyUses) {
  backend_.spec.managed_store.reset();
  EXPECT_EQ(Ready().status, "Unknown");
}

TEST_F(BackendStatusTest, CountsAgentsThatDeliverAndThatCannot) {
  const CollectionHealth delivering = Delivering();
  const CollectionHealth refused =
      Failing(reasons::kConnectionRefused, kNow);  // of the pod, not of the backend
  const CollectionHealth unreachable = Failing(reasons::kBackendUnreachable, kNow);
  view_.agents = {
      {"n1", {&delivering, &refused}}, {"n2", {&delivering, &unreachable}}, {"n3", {&refused}}};
  EXPECT_EQ(BackendStatus(backend_, view_, {kNow}).agents,
            (api::ProfilingBackendStatus::Agents{1, 1}));
  EXPECT_EQ(Ready().reason, reasons::kBackendUnreachable);
  EXPECT_EQ(Ready().message, "1 of 2 agents cannot deliver; node n2: why");
}

TEST_F(BackendStatusTest, SaysWhenAnotherOneIsTheDefault) {
  view_.default_name = "older";
  EXPECT_EQ(BackendStatus(backend_, view_, {kNow}).conditions.at(0).reason, "AnotherDefault");
}

TEST_F(BackendStatusTest, AMissingSecretStallsItAndNamesTheKey) {
  EXPECT_EQ(Find("Stalled").status, "False");
  const Problem problem{reasons::kSecretNotFound, "Secret \"s\" of namespace ns has no key \"k\""};
  view_.problem = &problem;
  for (const char* type : {"Accepted", "Ready"}) {
    EXPECT_EQ(Find(type).status, "False") << type;
    EXPECT_EQ(Find(type).message, problem.message) << type;
  }
  EXPECT_EQ(Find("Stalled").status, "True");
  EXPECT_EQ(Find("Stalled").reason, reasons::kSecretNotFound);
}

TEST_F(BackendStatusTest, AMissingSecretIsSaidBeforeTheAgentsAreBack) {
  backend_.status = BackendStatus(backend_, view_, {kNow});
  const Problem problem{reasons::kSecretNotFound, "gone"};
  view_.problem = &problem;
  const auto restarted = BackendStatus(backend_, view_, {kNow, /*settled=*/false});
  EXPECT_EQ(restarted.conditions.at(1).type, "Ready");
  EXPECT_EQ(restarted.conditions.at(1).status, "False");
  const Problem unread{reasons::kSecretNotRead, "not yet"};
  view_.problem = &unread;
  EXPECT_EQ(BackendStatus(backend_, view_, {kNow, /*settled=*/false}), backend_.status);
}

TEST_F(BackendStatusTest, ASecretThatIsNotReadYetDoesNotStallIt) {
  const Problem problem{reasons::kSecretNotRead, "not yet"};
  view_.problem = &problem;
  EXPECT_EQ(Ready().status, "False");
  EXPECT_EQ(Find("Stalled").status, "False");
}

TEST_F(BackendStatusTest, TellsAServerThatDoesNotAnswerFromOneThatRefuses) {
  const CollectionHealth unreachable = Failing(reasons::kBackendUnreachable, kNow);
  const CollectionHealth unauthorized = Failing(reasons::kBackendUnauthorized, kNow);
  EXPECT_EQ(Find("Reachable").status, "Unknown");
  EXPECT_EQ(Find("Accepting").status, "Unknown");
  view_.agents = {{"n1", {&unauthorized}}};
  EXPECT_EQ(Find("Reachable").status, "True");
  EXPECT_EQ(Find("Accepting").reason, reasons::kBackendUnauthorized);
  view_.agents = {{"n1", {&unreachable}}};
  EXPECT_EQ(Find("Reachable").status, "False");
  EXPECT_EQ(Find("Accepting").status, "Unknown");
}

TEST_F(BackendStatusTest, SaysWhatTheApiServerRefusedOfAManagedStore) {
  view_.apply_error = "apply StatefulSet x: forbidden";
  EXPECT_EQ(Ready().reason, "StoreNotApplied");
  EXPECT_EQ(Ready().message, view_.apply_error);
}

TEST(HealthOf, FindsTheCollectionsOfOneBackend) {
  NodeAssignment assignment;
  assignment["u"] = {.uid = "u",
                     .containers = {{.name = "app", .backend = "a"}},
                     .pulls = {{.type = ProfileType::kMemory, .container = "app", .backend = "b"}}};
  NodeReport report;
  report.collections[{"u", "app", ProfileType::kCpu}] = Delivering(1);
  report.collections[{"u", "app", ProfileType::kMemory}] = Delivering(2);
  ASSERT_EQ(HealthOf("b", assignment, report).size(), 1U);
  EXPECT_EQ(HealthOf("b", assignment, report)[0]->last_delivered_ns, 2);
}

}  // namespace
}  // namespace flamefleet::plan
