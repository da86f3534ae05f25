// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/pod_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/reasons.h"
#include "operator/plan/assignment.h"
#include "tests/operator/plan/builders.h"

namespace flamefleet::plan {
namespace {

using api::CollectMode;
using api::PortRef;
using api::ProfileSpec;

PodPlan PlanOf(const api::Pod& pod, const std::vector<const api::ProfilingTarget*>& targets) {
  const BackendTable backends = DefaultBackends();
  return PlanPod({.pod = pod, .targets = targets, .families = {true, true}, .backends = backends});
}

ProfileSpec Pull(ProfileType type, PortRef port) {
  return {.type = type, .pull = {.port = std::move(port)}};
}

TEST(Matches, NeedsNamespaceAndSelector) {
  api::ProfilingTarget target = Target("t", {});
  target.spec.selector.match_labels = {{"app", "checkout"}};
  api::Pod pod = RunningPod();
  EXPECT_TRUE(Matches(target, pod));
  pod.meta.ns = "other";
  EXPECT_FALSE(Matches(target, pod));
}

TEST(PlanPod, SamplesEveryContainerButInitContainers) {
  api::Pod pod = RunningPod();
  pod.containers = {MainContainer("app"), MainContainer("mesh"), MainContainer("prepare")};
  pod.containers[1].kind = api::ContainerKind::kSidecar;
  pod.containers[2].kind = api::ContainerKind::kInit;
  const api::ProfilingTarget target = Target("t", {{ProfileType::kCpu}});
  const PodPlan plan = PlanOf(pod, {&target});
  ASSERT_EQ(plan.collections.size(), 2U);
  EXPECT_EQ(plan.collections[0].container, "app");
  EXPECT_EQ(plan.collections[1].container, "mesh");
}

TEST(PlanPod, CpuWithAPortIsPulledUnlessTheModeSaysOtherwise) {
  const api::Pod pod = RunningPod();
  api::ProfilingTarget target = Target("t", {Pull(ProfileType::kCpu, {6060, ""})});
  EXPECT_TRUE(PlanOf(pod, {&target}).collections.at(0).pull);
  target.spec.profiles[0].mode = CollectMode::kEbpf;
  EXPECT_FALSE(PlanOf(pod, {&target}).collections.at(0).pull);
  target.spec.profiles = {{ProfileType::kCpu, CollectMode::kPull, {}}};
  EXPECT_EQ(PlanOf(pod, {&target}).refusals.at(0).problem.reason, reasons::kPortRequired);
}

TEST(PlanPod, ThreadLabelsAreForEbpfAndSaidToBeInVainOtherwise) {
  const api::Pod pod = RunningPod();
  api::ProfilingTarget target = Target("t", {{.type = ProfileType::kCpu, .thread_labels = true}});
  const PodPlan sampled = PlanOf(pod, {&target});
  EXPECT_TRUE(sampled.collections.at(0).thread_labels);
  EXPECT_TRUE(AssignPod(pod, sampled)->containers.at(0).thread_labels);
  EXPECT_THAT(sampled.warnings, testing::IsEmpty());
  target.spec.profiles[0].pull.port = PortRef{6060, ""};
  const PodPlan pulled = PlanOf(pod, {&target});
  EXPECT_FALSE(pulled.collections.at(0).thread_labels);
  ASSERT_EQ(pulled.warnings.size(), 1U);
  EXPECT_EQ(pulled.warnings[0].reason, reasons::kModeNotSupported);
}

TEST(PlanPod, AnAnnotatedPortServesATargetThatSetsNone) {
  const api::Pod pod = RunningPod("p", {{"pyroscope.io/port", "7070"}});
  const api::ProfilingTarget target = Target("t", {{ProfileType::kMemory}});
  const PodPlan plan = PlanOf(pod, {&target});
  ASSERT_EQ(plan.collections.size(), 1U);
  EXPECT_EQ(plan.collections[0].pull->port, 7070);
  EXPECT_EQ(plan.collections[0].pull->path, "/debug/pprof/allocs");
}

TEST(PlanPod, AFieldOfTheTargetWinsOverAnnotations) {
  const api::Pod pod = RunningPod("p", {{"pyroscope.io/scrape", "true"},
                                        {"pyroscope.io/port", "not a port"},
                                        {"pyroscope.io/profile-mem-path", "/annotated"},
                                        {"pyroscope.io/service_name", "annotated"}});
  api::ProfilingTarget target = Target("t", {Pull(ProfileType::kMemory, {6060, ""})});
  target.spec.profiles[0].pull.path = "/targeted";
  target.spec.service_name = "targeted";
  const PodPlan plan = PlanOf(pod, {&target});
  ASSERT_EQ(plan.collections.size(), 1U);
  EXPECT_EQ(plan.collections[0].pull->port, 6060);
  EXPECT_EQ(plan.collections[0].pull->path, "/targeted");
  EXPECT_EQ(plan.collections[0].labels.at("service_name"), "targeted");
  EXPECT_TRUE(plan.collections[0].askers.annotations);
}

TEST(PlanPod, WhatAnAnnotationSaysInVainIsAWarning) {
  struct Row {
    StringMap annotations;
    api::ProfileSpec profile;
    std::vector<std::string_view> want;  // reasons of warnings
  };
  const std::pair<const std::string, std::string> scrape{"pyroscope.io/scrape", "true"};
  const std::pair<const std::string, std::string> port{"pyroscope.io/port", "7070"};
  api::ProfileSpec memory = Pull(ProfileType::kMemory, {6060, ""});
  api::ProfileSpec pathed = memory;
  pathed.pull.path = "/t";
  api::ProfileSpec secured = memory;
  secured.pull.scheme = api::PullScheme::kHttps;
  api::ProfileSpec ebpf{.type = ProfileType::kCpu, .mode = api::CollectMode::kEbpf};
  const Row rows[] = {
      {{scrape}, memory, {}},
      {{scrape, {"pyroscope.io/port", "6060"}}, memory, {}},
      {{scrape, port}, memory, {reasons::kConflictingAnnotations}},
      {{{"profiles.grafana.com/memory.port_name", "pprof"}}, memory, {}},
      {{{"profiles.grafana.com/memory.port", "x"}}, memory, {reasons::kInvalidAnnotation}},
      {{{"profiles.grafana.com/memory.scrape", "false"}},
       memory,
       {reasons::kConflictingAnnotations}},
      {{{"profiles.grafana.com/memory.scrape", "no"}}, memory, {reasons::kInvalidAnnotation}},
      {{{"profiles.grafana.com/memory.path", "/a"}}, memory, {}},
      {{{"profiles.grafana.com/memory.path", "/a"}}, pathed, {reasons::kConflictingAnnotations}},
      {{{"profiles.grafana.com/memory.scheme", "https"}}, memory, {}},
      {{{"profiles.grafana.com/memory.scheme", "http"}},
       secured,
       {reasons::kConflictingAnnotations}},
      {{scrape, port}, ebpf, {reasons::kConflictingAnnotations}},
  };
  for (const Row& row : rows) {
    const api::ProfilingTarget target = Target("t", {row.profile});
    const PodPlan plan = PlanOf(RunningPod("p", row.annotations), {&target});
    std::vector<std::string_view> reasons;
    for (const Problem& warning : plan.warnings)
      reasons.push_back(warning.reason);
    EXPECT_EQ(reasons, row.want) << (row.annotations.empty() ? "" : row.annotations.begin()->first);
  }
}

TEST(PlanPod, APullWithoutPortHasNoEffectOnCpuAndSaysSo) {
  api::ProfilingTarget target = Target("t", {{ProfileType::kCpu}});
  target.spec.profiles[0].pull.interval_ns = 30 * kNanosPerSecond;
  const PodPlan plan = PlanOf(RunningPod(), {&target});
  EXPECT_FALSE(plan.collections.at(0).pull);
  EXPECT_EQ(plan.warnings.at(0).reason, reasons::kPortRequired);
}

TEST(PlanPod, AContainerThatIsNotThereIsTold) {
  api::ProfilingTarget target = Target("t", {{ProfileType::kCpu}});
  target.spec.containers = {"app", "absent"};
  const PodPlan some = PlanOf(RunningPod(), {&target});
  EXPECT_EQ(some.collections.size(), 1U);
  EXPECT_EQ(some.warnings.at(0).reason, reasons::kContainerNotFound);
  target.spec.containers = {"absent"};
  target.spec.profiles = {Pull(ProfileType::kMemory, {6060, ""})};
  EXPECT_EQ(PlanOf(RunningPod(), {&target}).refusals.at(0).problem.reason,
            reasons::kContainerNotFound);
}

TEST(PlanPod, HttpsIsVerifiedUnlessTheTargetSaysOtherwise) {
  api::ProfilingTarget target = Target("t", {Pull(ProfileType::kMemory, {6060, ""})});
  EXPECT_FALSE(PlanOf(RunningPod(), {&target}).collections.at(0).pull->tls);
  target.spec.profiles[0].pull.scheme = api::PullScheme::kHttps;
  EXPECT_EQ(PlanOf(RunningPod(), {&target}).collections.at(0).pull->tls, api::PullTls());
  target.spec.profiles[0].pull.tls = {.ca_pem = "pem", .server_name = "pprof"};
  const auto assignment = AssignPod(RunningPod(), PlanOf(RunningPod(), {&target}));
  EXPECT_EQ(assignment->pulls.at(0).tls, (api::PullTls{.ca_pem = "pem", .server_name = "pprof"}));
}

TEST(PlanPod, TheOwnersVetoWinsOverTargets) {
  const api::Pod pod = RunningPod("p", {{"pyroscope.io/scrape", "false"}});
  const api::ProfilingTarget target = Target("t", {{ProfileType::kCpu}});
  const PodPlan plan = PlanOf(pod, {&target});
  EXPECT_TRUE(plan.vetoed);
  EXPECT_TRUE(plan.collections.empty());
  EXPECT_TRUE(plan.refusals.empty());
}

TEST(PlanPod, APausedTargetStopsAnnotationsToo) {
  const api::Pod pod = RunningPod("p", {{"pyroscope.io/scrape", "true"}});
  api::ProfilingTarget target = Target("t", {{ProfileType::kMemory}});
  target.spec.paused = true;
  const PodPlan plan = PlanOf(pod, {&target});
  EXPECT_EQ(plan.paused_by, "t");
  EXPECT_TRUE(plan.collections.empty());
}

TEST(PlanPod, CollectsATypeOnceForTargetsThatWantTheSame) {
  const api::Pod pod = RunningPod();
  const api::ProfilingTarget a = Target("a", {{ProfileType::kCpu}});
  const api::ProfilingTarget b = Target("b", {{ProfileType::kCpu}});
  const PodPlan plan = PlanOf(pod, {&b, &a});
  ASSERT_EQ(plan.collections.size(), 1U);
  EXPECT_THAT(plan.collections[0].askers.targets, testing::ElementsAre("a", "b"));
}

TEST(PlanPod, TheOlderTargetWinsAndTheYoungerIsToldSo) {
  const api::Pod pod = RunningPod();
  api::ProfilingTarget older = Target("z", {{ProfileType::kCpu}});
  api::ProfilingTarget younger = Target("a", {Pull(ProfileType::kCpu, {6060, ""})});
  older.meta.creation_ns = 1;
  younger.meta.creation_ns = 2;
  const PodPlan plan = PlanOf(pod, {&younger, &older});
  ASSERT_EQ(plan.collections.size(), 1U);
  EXPECT_FALSE(plan.collections[0].pull);
  ASSERT_EQ(plan.refusals.size(), 1U);
  EXPECT_EQ(plan.refusals[0].problem.reason, reasons::kConflictingTargets);
  EXPECT_THAT(plan.refusals[0].askers.targets, testing::ElementsAre("a"));
  EXPECT_EQ(plan.warnings.at(0).reason, reasons::kConflictingTargets);  // both are told
}

TEST(PlanPod, TargetsMaySampleDifferentContainersOfOnePod) {
  api::Pod pod = RunningPod();
  pod.containers.push_back(MainContainer("sidecar"));
  api::ProfilingTarget a = Target("a", {{ProfileType::kCpu}});
  api::ProfilingTarget b = Target("b", {{ProfileType::kCpu}});
  a.spec.containers = {"app"};
  b.spec.containers = {"sidecar"};
  EXPECT_EQ(PlanOf(pod, {&a, &b}).collections.size(), 2U);
  EXPECT_TRUE(PlanOf(pod, {&a, &b}).refusals.empty());
}

TEST(PlanPod, FindsPortsByNameAndTheirContainer) {
  api::Pod pod = RunningPod();
  pod.containers = {MainContainer("web", {{"http", 80}}), MainContainer("app", {{"pprof", 6060}})};
  const api::ProfilingTarget target = Target("t", {Pull(ProfileType::kMemory, {0, "pprof"})});
  const PodPlan plan = PlanOf(pod, {&target});
  ASSERT_EQ(plan.collections.size(), 1U);
  EXPECT_EQ(plan.collections[0].pull->port, 6060);
  EXPECT_EQ(plan.collections[0].container, "app");
  EXPECT_EQ(plan.collections[0].labels.at("container"), "app");
}

TEST(PlanPod, APortThatNobodyDeclaresBelongsToTheOnlyContainerOrToNone) {
  api::Pod pod = RunningPod();
  const api::ProfilingTarget target = Target("t", {Pull(ProfileType::kMemory, {9999, ""})});
  EXPECT_EQ(PlanOf(pod, {&target}).collections.at(0).container, "app");
  pod.containers.push_back(MainContainer("second"));
  const PodPlan plan = PlanOf(pod, {&target});
  EXPECT_EQ(plan.collections.at(0).container, "");
  EXPECT_FALSE(plan.collections.at(0).labels.contains("container"));
}

TEST(PlanPod, OnePortNameWithTwoNumbersIsAConflict) {
  api::Pod pod = RunningPod();
  pod.containers.push_back(MainContainer("second", {{"pprof", 7070}}));
  api::ProfilingTarget target = Target("t", {Pull(ProfileType::kMemory, {0, "pprof"})});
  EXPECT_EQ(PlanOf(pod, {&target}).refusals.at(0).problem.reason, reasons::kConflictingPorts);
  target.spec.containers = {"second"};
  EXPECT_EQ(PlanOf(pod, {&target}).collections.at(0).pull->port, 7070);
}

TEST(PlanPod, IgnoresPortsOfInitContainers) {
  api::Pod pod = RunningPod();
  pod.containers[0].kind = api::ContainerKind::kInit;
  pod.containers.push_back(MainContainer("web"));
  const api::ProfilingTarget target = Target("t", {Pull(ProfileType::kMemory, {0, "pprof"})});
  EXPECT_EQ(PlanOf(pod, {&target}).refusals.at(0).problem.reason, reasons::kPortNotFound);
}

TEST(PlanPod, RefusesWithoutABackend) {
  const api::Pod pod = RunningPod();
  api::ProfilingTarget target = Target("t", {{ProfileType::kCpu}});
  const BackendTable none({}, "ns");
  EXPECT_EQ(
      PlanPod({.pod = pod, .targets = {&target}, .backends = none}).refusals.at(0).problem.reason,
      reasons::kNoBackend);
  target.spec.backend = "missing";
  const BackendTable backends = DefaultBackends();
  EXPECT_EQ(PlanPod({.pod = pod, .targets = {&target}, .backends = backends})
                .refusals.at(0)
                .problem.message,
            "there is no ProfilingBackend \"missing\"");
}

TEST(PlanPod, PodLabelsAndLabelsOfTheTargetBecomeSeriesLabels) {
  api::ProfilingTarget target = Target("t", {{ProfileType::kCpu}});
  target.spec.labels = {{"team", "payments"}, {"version", "from the target"}};
  target.spec.pod_labels = {"version", "app.kubernetes.io/version", "absent"};
  const StringMap labels = PlanOf(RunningPod(), {&target}).collections.at(0).labels;
  EXPECT_EQ(labels.at("team"), "payments");
  EXPECT_EQ(labels.at("version"), "v7");
  EXPECT_EQ(labels.at("app_kubernetes_io_version"), "7");
  EXPECT_FALSE(labels.contains("absent"));
}

TEST(PlanPod, TimeoutNeverExceedsTheInterval) {
  api::ProfilingTarget target = Target("t", {Pull(ProfileType::kMemory, {6060, ""})});
  target.spec.profiles[0].pull.interval_ns = 5 * kNanosPerSecond;
  EXPECT_EQ(PlanOf(RunningPod(), {&target}).collections.at(0).pull->timeout_ns,
            5 * kNanosPerSecond);
}

TEST(BackendTable, TheOldestDefaultIsTheDefault) {
  api::ProfilingBackend a = DefaultBackend();
  api::ProfilingBackend b = DefaultBackend();
  a.meta.name = "a";
  a.meta.creation_ns = 2;
  b.meta.name = "b";
  b.meta.creation_ns = 1;
  EXPECT_EQ(BackendTable({&a, &b}, "ns").default_name(), "b");
  b.meta.deleting = true;
  EXPECT_EQ(BackendTable({&a, &b}, "ns").default_name(), "a");
  EXPECT_EQ(BackendTable({&a}, "ns").Find("")->endpoint, "https://flamefleet-store-a.ns.svc:4443");
  EXPECT_EQ(BackendTable({&a}, "ns").Find("")->protocol, BackendProtocol::kPyroscope);
  a.spec.type = api::BackendType::kParca;
  EXPECT_EQ(BackendTable({&a}, "ns").Find("")->protocol, BackendProtocol::kParca);
  a.spec.type = api::BackendType::kOtlp;
  EXPECT_EQ(BackendTable({&a}, "ns").Find("")->protocol, BackendProtocol::kOtlp);
}

TEST(AssignPod, CarriesContainersAndPulls) {
  const api::Pod pod = RunningPod();
  const api::ProfilingTarget target =
      Target("t", {{ProfileType::kCpu}, Pull(ProfileType::kMemory, {6060, ""})});
  const std::optional<PodAssignment> assignment = AssignPod(pod, PlanOf(pod, {&target}));
  ASSERT_TRUE(assignment);
  EXPECT_EQ(assignment->uid, "uid-p");
  EXPECT_EQ(assignment->ip, "10.0.0.1");
  ASSERT_EQ(assignment->containers.size(), 1U);
  EXPECT_EQ(assignment->containers[0].id, "id-app");
  EXPECT_EQ(assignment->containers[0].backend, "default");
  ASSERT_EQ(assignment->pulls.size(), 1U);
  EXPECT_EQ(assignment->pulls[0].type, ProfileType::kMemory);
  EXPECT_EQ(assignment->pulls[0].timeout_ns, 10 * kNanosPerSecond);
}

TEST(AssignPod, TellsOfAPodThatStartsItsContainersAlone) {
  const api::ProfilingTarget target =
      Target("t", {{ProfileType::kCpu}, Pull(ProfileType::kMemory, {6060, ""})});
  api::Pod pod = RunningPod();
  pod.phase = api::PodPhase::kPending;
  pod.containers[0].id = "";
  const std::optional<PodAssignment> assignment = AssignPod(pod, PlanOf(pod, {&target}));
  ASSERT_TRUE(assignment);
  ASSERT_EQ(assignment->containers.size(), 1U);
  EXPECT_EQ(assignment->containers[0].id, "");
  EXPECT_TRUE(assignment->pulls.empty());
  const api::ProfilingTarget pulled = Target("t", {Pull(ProfileType::kMemory, {6060, ""})});
  EXPECT_FALSE(AssignPod(pod, PlanOf(pod, {&pulled})));
}

TEST(AssignPod, GivesNothingForPodsThatHaveEnded) {
  const api::ProfilingTarget target = Target("t", {{ProfileType::kCpu}});
  for (const api::PodPhase phase : {api::PodPhase::kSucceeded, api::PodPhase::kFailed}) {
    api::Pod pod = RunningPod();
    pod.phase = phase;
    EXPECT_FALSE(AssignPod(pod, PlanOf(pod, {&target})));
  }
  api::Pod pod = RunningPod();
  pod.meta.deleting = true;
  EXPECT_FALSE(AssignPod(pod, PlanOf(pod, {&target})));
}

PodPlan PlanOfPooled(const api::Pod& pod,
                     const std::vector<const api::ProfilingTarget*>& targets = {},
                     api::AnnotationFamilies families = {}) {
  static const BackendTable backends = DefaultBackends();
  return PlanPod({.pod = pod,
                  .targets = targets,
                  .families = families,
                  .backends = backends,
                  .all_pods = true});
}

TEST(ScopeAllPods, SamplesCpuOfAPodThatNobodyAsksFor) {
  const PodPlan plan = PlanOfPooled(RunningPod());
  ASSERT_EQ(plan.collections.size(), 1U);
  EXPECT_EQ(plan.collections[0].type, ProfileType::kCpu);
  EXPECT_FALSE(plan.collections[0].pull);
  EXPECT_EQ(plan.collections[0].askers, (Askers{.pool = true}));
  EXPECT_TRUE(plan.pooled);
}

TEST(ScopeAllPods, LeavesCpuToATargetOrAnnotationsThatAskForIt) {
  const api::ProfilingTarget target = Target("t", {{ProfileType::kCpu}});
  EXPECT_EQ(PlanOfPooled(RunningPod(), {&target}).collections.at(0).askers,
            (Askers{.targets = {"t"}}));
  const PodPlan annotated =
      PlanOfPooled(RunningPod("p", {{"profiles.grafana.com/cpu.scrape", "true"},
                                    {"profiles.grafana.com/cpu.port", "6060"}}),
                   {}, {.grafana = true});
  ASSERT_EQ(annotated.collections.size(), 1U);
  EXPECT_TRUE(annotated.collections[0].pull);
  EXPECT_FALSE(annotated.pooled);
}

TEST(ScopeAllPods, HonoursTheOwnersNoWhateverFamiliesMayOptIn) {
  for (const char* key : {"pyroscope.io/scrape", "profiles.grafana.com/cpu.scrape"}) {
    EXPECT_THAT(PlanOfPooled(RunningPod("p", {{key, "false"}})).collections, testing::IsEmpty())
        << key;
  }
  EXPECT_THAT(PlanOfPooled(RunningPod("p", {{"pyroscope.io/scrape", "true"},
                                            {"pyroscope.io/profile-cpu-enabled", "false"}}))
                  .collections,
              testing::IsEmpty());
}

TEST(ScopeAllPods, IsStoppedByAPausedTarget) {
  api::ProfilingTarget target = Target("t", {{ProfileType::kMemory}});
  target.spec.paused = true;
  EXPECT_THAT(PlanOfPooled(RunningPod(), {&target}).collections, testing::IsEmpty());
}

TEST(AssignHost, IsTheNodeIntoTheDefaultBackend) {
  const auto host = AssignHost("n1", DefaultBackends());
  ASSERT_TRUE(host.has_value());
  EXPECT_EQ(host->uid, "");
  EXPECT_THAT(host->containers, testing::ElementsAre(ContainerAssignment{
                                    .backend = "default", .labels = {{"node", "n1"}}}));
}

TEST(AssignHost, IsNothingWithoutABackendThatCanBeUsed) {
  EXPECT_FALSE(AssignHost("n1", BackendTable({}, "flamefleet-system")).has_value());
  api::ProfilingBackend backend = DefaultBackend();
  backend.spec.managed_store.reset();
  backend.spec.auth.bearer_token = api::SecretKey{"login", "token"};
  // Not read yet: it is held, which is no reason to do nothing. Not there: it is.
  EXPECT_TRUE(AssignHost("n1", BackendTable({&backend}, "flamefleet-system")).has_value());
  EXPECT_FALSE(AssignHost("n1", BackendTable({&backend}, "flamefleet-system", {{"login", nullptr}}))
                   .has_value());
}

}  // namespace
}  // namespace flamefleet::plan
