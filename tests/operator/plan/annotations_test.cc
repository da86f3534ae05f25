// SPDX-License-Identifier: Apache-2.0
// Every key of docs/annotations.md is a row here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/reasons.h"
#include "operator/plan/pod_plan.h"
#include "tests/operator/plan/builders.h"
#include "tests/operator/plan/describe.h"

namespace flamefleet::plan {
namespace {

PodPlan PlanOf(const api::Pod& pod, api::AnnotationFamilies families = {true, true}) {
  const BackendTable backends = DefaultBackends();
  return PlanPod({.pod = pod, .families = families, .backends = backends});
}

struct Row {
  StringMap annotations;
  std::vector<std::string> want;
};

void Check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    std::string keys;
    for (const auto& [key, value] : row.annotations)
      keys.append(key).append("=").append(value).append(" ");
    EXPECT_THAT(Describe(PlanOf(RunningPod("p", row.annotations))),
                testing::UnorderedElementsAreArray(row.want))
        << keys;
  }
}

constexpr const char* kCpu = "cpu ebpf app";
constexpr const char* kCpuPull = "cpu pull 6060/debug/pprof/profile";
constexpr const char* kMemPull = "memory pull 6060/debug/pprof/heap";
const std::pair<const std::string, std::string> kScrape{"pyroscope.io/scrape", "true"};
const std::pair<const std::string, std::string> kPort{"pyroscope.io/port", "6060"};

TEST(PyroscopeAnnotations, ScrapeIsTheSwitch) {
  Check({
      {{}, {}},
      {{kScrape}, {kCpu}},
      {{{"pyroscope.io/scrape", "false"}}, {"vetoed"}},
      {{{"pyroscope.io/scrape", "True"}}, {"cpu InvalidAnnotation"}},
      {{{"pyroscope.io/scrape", "1"}}, {"cpu InvalidAnnotation"}},
      {{{"pyroscope.io/scrape", ""}}, {"cpu InvalidAnnotation"}},
      {{{"pyroscope.io/profile-cpu-enabled", "true"}}, {}},
      {{kPort}, {}},
  });
}

TEST(PyroscopeAnnotations, CpuAndMemoryAreOnUnlessToldOtherwise) {
  Check({
      {{kScrape, kPort}, {kCpuPull, kMemPull}},
      {{kScrape, kPort, {"pyroscope.io/profile-mem-enabled", "false"}}, {kCpuPull}},
      {{kScrape, kPort, {"pyroscope.io/profile-cpu-enabled", "false"}}, {kMemPull}},
      {{kScrape, {"pyroscope.io/profile-cpu-enabled", "true"}}, {kCpu}},
      {{kScrape, {"pyroscope.io/profile-cpu-enabled", "false"}}, {}},
      {{kScrape, {"pyroscope.io/profile-mem-enabled", "true"}}, {kCpu, "memory PortRequired"}},
      {{kScrape, kPort, {"pyroscope.io/profile-goroutines-enabled", "true"}},
       {kCpuPull, kMemPull, "goroutine pull 6060/debug/pprof/goroutine"}},
      {{kScrape, kPort, {"pyroscope.io/profile-mutex-enabled", "true"}},
       {kCpuPull, kMemPull, "mutex pull 6060/debug/pprof/mutex"}},
      {{kScrape, kPort, {"pyroscope.io/profile-block-enabled", "true"}},
       {kCpuPull, kMemPull, "block pull 6060/debug/pprof/block"}},
      {{kScrape, kPort, {"pyroscope.io/profile-block-enabled", "false"}}, {kCpuPull, kMemPull}},
  });
}

TEST(PyroscopeAnnotations, ABadValueStopsOnlyItsType) {
  Check({
      {{kScrape, kPort, {"pyroscope.io/profile-mem-enabled", "yes"}},
       {kCpuPull, "memory InvalidAnnotation"}},
      {{kScrape, kPort, {"pyroscope.io/profile-block-enabled", "TRUE"}},
       {kCpuPull, kMemPull, "block InvalidAnnotation"}},
      {{kScrape, kPort, {"pyroscope.io/profile-mem-path", "heap"}},
       {kCpuPull, "memory InvalidAnnotation"}},
      {{kScrape, kPort, {"pyroscope.io/profile-mem-path", "/a?b"}},
       {kCpuPull, "memory InvalidAnnotation"}},
      {{kScrape, kPort, {"pyroscope.io/profile-cpu-param-seconds", "x"}},
       {kMemPull, "cpu InvalidAnnotation"}},
      {{kScrape, kPort, {"pyroscope.io/profile-mem-param-gc", std::string(257, 'x')}},
       {kCpuPull, "memory InvalidAnnotation"}},
      // The port and the scheme are those of the whole pod.
      {{kScrape, {"pyroscope.io/port", "pprof"}},
       {"cpu InvalidAnnotation", "memory InvalidAnnotation"}},
      {{kScrape, {"pyroscope.io/port", "0"}},
       {"cpu InvalidAnnotation", "memory InvalidAnnotation"}},
      {{kScrape, {"pyroscope.io/port", "65536"}},
       {"cpu InvalidAnnotation", "memory InvalidAnnotation"}},
      {{kScrape, {"pyroscope.io/port", "6060 "}},
       {"cpu InvalidAnnotation", "memory InvalidAnnotation"}},
      {{kScrape, kPort, {"pyroscope.io/scheme", "HTTPS"}},
       {"cpu InvalidAnnotation", "memory InvalidAnnotation"}},
      {{kScrape, {"pyroscope.io/scheme", "HTTPS"}}, {kCpu}},  // eBPF needs no scheme
  });
}

TEST(PyroscopeAnnotations, PathAndParametersReplaceTheDefaults) {
  Check({
      {{kScrape, kPort, {"pyroscope.io/profile-mem-path", "/x/heap"}},
       {kCpuPull, "memory pull 6060/x/heap"}},
      {{kScrape, kPort, {"pyroscope.io/profile-mem-param-gc", "1"}},
       {kCpuPull, std::string(kMemPull) + " gc=1"}},
      {{kScrape, kPort, {"pyroscope.io/profile-cpu-param-seconds", "30"}},
       {std::string(kCpuPull) + " every 30s", kMemPull}},
      {{kScrape, kPort, {"pyroscope.io/profile-cpu-param-seconds", "1"}},
       {std::string(kCpuPull) + " every 5s", kMemPull}},
      {{kScrape, kPort, {"pyroscope.io/scheme", "http"}}, {kCpuPull, kMemPull}},
      {{kScrape, kPort, {"pyroscope.io/scheme", "https"}},
       {std::string(kCpuPull) + " https unverified", std::string(kMemPull) + " https unverified"}},
      {{kScrape, {"pyroscope.io/port", "7070"}},
       {"cpu pull 7070/debug/pprof/profile",
        "memory pull 7070/debug/pprof/heap"}},  // need not be declared
  });
}

TEST(PyroscopeAnnotations, UnknownKeysAreReportedAndChangeNothing) {
  Check({
      {{kScrape, {"pyroscope.io/scrap", "true"}}, {kCpu, "warning UnknownAnnotation"}},
      {{{"pyroscope.io/scrap", "true"}}, {"warning UnknownAnnotation"}},
      {{kScrape, {"pyroscope.io/profile-memory-enabled", "true"}},
       {kCpu, "warning UnknownAnnotation"}},
      {{kScrape, {"pyroscope.io/profile-cpu", "true"}}, {kCpu, "warning UnknownAnnotation"}},
      {{kScrape, {"pyroscope.io/profile-cpu-param-", "1"}}, {kCpu, "warning UnknownAnnotation"}},
      {{kScrape, {"pyroscope.io/spy-name", "gospy"}}, {kCpu}},
  });
}

TEST(GrafanaAnnotations, EachTypeHasItsSwitch) {
  Check({
      {{{"profiles.grafana.com/cpu.scrape", "true"}}, {kCpu}},
      {{{"profiles.grafana.com/cpu.scrape", "true"}, {"profiles.grafana.com/cpu.port", "6060"}},
       {kCpuPull}},
      {{{"profiles.grafana.com/cpu.scrape", "false"}, {"profiles.grafana.com/cpu.port", "6060"}},
       {}},
      {{{"profiles.grafana.com/cpu.scrape", "yes"}}, {"cpu InvalidAnnotation"}},
      {{{"profiles.grafana.com/memory.scrape", "true"}}, {"memory PortRequired"}},
      {{{"profiles.grafana.com/memory.scrape", "true"},
        {"profiles.grafana.com/memory.port", "6060"}},
       {"memory pull 6060/debug/pprof/allocs"}},
      {{{"profiles.grafana.com/goroutine.scrape", "true"},
        {"profiles.grafana.com/goroutine.port", "6060"}},
       {"goroutine pull 6060/debug/pprof/goroutine"}},
      {{{"profiles.grafana.com/mutex.scrape", "true"}, {"profiles.grafana.com/mutex.port", "6060"}},
       {"mutex pull 6060/debug/pprof/mutex"}},
      {{{"profiles.grafana.com/block.scrape", "true"}, {"profiles.grafana.com/block.port", "6060"}},
       {"block pull 6060/debug/pprof/block"}},
      {{{"profiles.grafana.com/memory.port", "6060"}}, {}},
  });
}

TEST(GrafanaAnnotations, EbpfAsksForCpuOnItsOwn) {
  const std::pair<const std::string, std::string> scrape{"profiles.grafana.com/cpu.scrape", "true"};
  const std::pair<const std::string, std::string> port{"profiles.grafana.com/cpu.port", "6060"};
  Check({
      {{{"profiles.grafana.com/cpu.ebpf.enabled", "true"}}, {kCpu}},
      {{{"profiles.grafana.com/cpu.ebpf.enabled", "false"}}, {}},
      {{{"profiles.grafana.com/cpu.ebpf.enabled", "on"}}, {"cpu InvalidAnnotation"}},
      {{scrape, {"profiles.grafana.com/cpu.ebpf.enabled", "false"}}, {"cpu PortRequired"}},
      {{scrape, port, {"profiles.grafana.com/cpu.ebpf.enabled", "false"}}, {kCpuPull}},
      {{scrape, port, {"profiles.grafana.com/cpu.ebpf.enabled", "true"}},
       {kCpu, "warning ConflictingAnnotations"}},
      {{{"profiles.grafana.com/memory.ebpf.enabled", "true"}}, {"warning UnknownAnnotation"}},
  });
}

TEST(GrafanaAnnotations, PortsComeByNumberOrName) {
  const std::pair<const std::string, std::string> scrape{"profiles.grafana.com/memory.scrape",
                                                         "true"};
  const std::pair<const std::string, std::string> number{"profiles.grafana.com/memory.port",
                                                         "6060"};
  Check({
      {{scrape, {"profiles.grafana.com/memory.port_name", "pprof"}},
       {"memory pull 6060/debug/pprof/allocs"}},
      {{scrape, {"profiles.grafana.com/memory.port_name", "web"}}, {"memory PortNotFound"}},
      {{scrape, {"profiles.grafana.com/memory.port_name", "no port"}},
       {"memory InvalidAnnotation"}},
      {{scrape, {"profiles.grafana.com/memory.port", "x"}}, {"memory InvalidAnnotation"}},
      {{scrape, number, {"profiles.grafana.com/memory.port_name", "pprof"}},
       {"memory pull 6060/debug/pprof/allocs"}},
      {{scrape,
        {"profiles.grafana.com/memory.port", "7070"},
        {"profiles.grafana.com/memory.port_name", "pprof"}},
       {"memory ConflictingPorts"}},
      {{scrape, number, {"profiles.grafana.com/memory.path", "/p"}}, {"memory pull 6060/p"}},
      {{scrape, number, {"profiles.grafana.com/memory.path", "p"}}, {"memory InvalidAnnotation"}},
      {{scrape, number, {"profiles.grafana.com/memory.scheme", "http"}},
       {"memory pull 6060/debug/pprof/allocs"}},
      {{scrape, number, {"profiles.grafana.com/memory.scheme", "https"}},
       {"memory pull 6060/debug/pprof/allocs https unverified"}},
      {{scrape, number, {"profiles.grafana.com/memory.scheme", "ftp"}},
       {"memory InvalidAnnotation"}},
      {{scrape, number, {"profiles.grafana.com/memory.container", "app"}},
       {"memory pull 6060/debug/pprof/allocs"}},
      {{scrape,
        {"profiles.grafana.com/memory.port_name", "pprof"},
        {"profiles.grafana.com/memory.container", "other"}},
       {"memory ContainerNotFound"}},
      {{scrape, number, {"profiles.grafana.com/memory.container", "other"}},
       {"memory ContainerNotFound"}},
  });
}

TEST(GrafanaAnnotations, ContainerRestrictsEbpf) {
  const std::pair<const std::string, std::string> scrape{"profiles.grafana.com/cpu.scrape", "true"};
  Check({
      {{scrape, {"profiles.grafana.com/cpu.container", "app"}}, {kCpu}},
      {{scrape, {"profiles.grafana.com/cpu.container", "other"}}, {"cpu ContainerNotFound"}},
      {{scrape, {"profiles.grafana.com/cpu.container", "Other!"}}, {"cpu InvalidAnnotation"}},
  });
}

TEST(GrafanaAnnotations, TypesNobodyCollectsAreReported) {
  Check({
      {{{"profiles.grafana.com/fgprof.scrape", "true"}}, {"warning UnknownAnnotation"}},
      {{{"profiles.grafana.com/godeltaprof_memory.scrape", "true"}}, {"warning UnknownAnnotation"}},
      {{{"profiles.grafana.com/java.enabled", "true"}}, {"warning UnknownAnnotation"}},
      {{{"profiles.grafana.com/cpu.interval", "5s"}}, {"warning UnknownAnnotation"}},
      {{{"profiles.grafana.com/scrape", "true"}}, {"warning UnknownAnnotation"}},
  });
}

TEST(BothFamilies, PyroscopeWinsOverGrafana) {
  const std::pair<const std::string, std::string> scrape{"profiles.grafana.com/memory.scrape",
                                                         "true"};
  const std::pair<const std::string, std::string> port{"profiles.grafana.com/memory.port", "6060"};
  Check({
      {{kScrape, kPort, {"pyroscope.io/profile-mem-enabled", "false"}, scrape, port},
       {kCpuPull, "warning ConflictingAnnotations"}},
      {{kScrape,
        kPort,
        {"pyroscope.io/profile-mem-path", "/p"},
        scrape,
        {"profiles.grafana.com/memory.path", "/g"}},
       {kCpuPull, "memory pull 6060/p", "warning ConflictingAnnotations"}},
      {{{"pyroscope.io/scrape", "false"}, scrape, port}, {"vetoed"}},
      {{kScrape, kPort, scrape, port}, {kCpuPull, kMemPull}},
      {{kScrape, scrape, port}, {kCpu, "memory pull 6060/debug/pprof/allocs"}},
      {{kScrape, kPort, scrape, {"profiles.grafana.com/memory.path", "/g"}},
       {kCpuPull, "memory pull 6060/g"}},
      // A family that does not opt in has no say.
      {{kPort, scrape, {"profiles.grafana.com/memory.port", "7070"}},
       {"memory pull 7070/debug/pprof/allocs"}},
  });
}

TEST(BothFamilies, DifferentPortsForOneTypeAreAConflict) {
  Check({{{kScrape,
           kPort,
           {"profiles.grafana.com/memory.scrape", "true"},
           {"profiles.grafana.com/memory.port", "7070"}},
          {kCpuPull, "memory ConflictingPorts"}}});
}

TEST(BothFamilies, OnlyThoseOfThePoolOptIn) {
  const api::Pod pod = RunningPod("p", {kScrape,
                                        {"profiles.grafana.com/goroutine.scrape", "true"},
                                        {"profiles.grafana.com/goroutine.port", "6060"}});
  EXPECT_THAT(Describe(PlanOf(pod, {.pyroscope = true, .grafana = false})),
              testing::ElementsAre(kCpu));
  EXPECT_THAT(Describe(PlanOf(pod, {.pyroscope = false, .grafana = true})),
              testing::ElementsAre("goroutine pull 6060/debug/pprof/goroutine"));
  EXPECT_FALSE(PlanOf(pod, {.pyroscope = false, .grafana = false}).annotated);
  EXPECT_THAT(Describe(PlanOf(pod, {.pyroscope = false, .grafana = false})),
              testing::ElementsAre("not enabled"));
  EXPECT_TRUE(PlanOf(pod).annotated);
}

TEST(ServiceName, ComesFromTheFirstSourceThatHasOne) {
  struct NameRow {
    StringMap annotations;
    const char* want;
  };
  const NameRow rows[] = {
      {{kScrape}, "checkout"},  // the workload
      {{kScrape, {"resource.opentelemetry.io/service.name", "otel"}}, "otel"},
      {{kScrape,
        {"resource.opentelemetry.io/service.name", "otel"},
        {"profiles.grafana.com/service_name", "graf"}},
       "graf"},
      {{kScrape,
        {"profiles.grafana.com/service_name", "graf"},
        {"pyroscope.io/application-name", "app"}},
       "app"},
      {{kScrape, {"pyroscope.io/application-name", "app"}, {"pyroscope.io/service_name", "svc"}},
       "svc"},
      {{kScrape, {"pyroscope.io/service_name", "bad name"}}, "checkout"},
  };
  for (const NameRow& row : rows) {
    const PodPlan plan = PlanOf(RunningPod("p", row.annotations));
    ASSERT_EQ(plan.collections.size(), 1U);
    EXPECT_EQ(plan.collections[0].labels.at("service_name"), row.want);
  }
}

TEST(ServiceName, FallsBackToLabelWorkloadAndContainer) {
  api::Pod pod = RunningPod("p", {kScrape});
  pod.labels["app.kubernetes.io/name"] = "labelled";
  EXPECT_EQ(PlanOf(pod).collections[0].labels.at("service_name"), "labelled");
  pod.labels.clear();
  EXPECT_EQ(PlanOf(pod).collections[0].labels.at("service_name"), "checkout");
  pod.workload_name.clear();
  EXPECT_EQ(PlanOf(pod).collections[0].labels.at("service_name"), "app");
}

TEST(ServiceName, ABadOneIsReported) {
  EXPECT_THAT(Describe(PlanOf(RunningPod("p", {kScrape, {"pyroscope.io/service_name", "a{b}"}}))),
              testing::UnorderedElementsAre(kCpu, "warning InvalidAnnotation"));
}

TEST(Messages, NameKeyAndValueAndWhatIsAllowed) {
  const PodPlan plan =
      PlanOf(RunningPod("p", {kScrape, kPort, {"pyroscope.io/profile-mem-enabled", "yes"}}));
  ASSERT_EQ(plan.refusals.size(), 1U);
  EXPECT_EQ(plan.refusals[0].problem.message,
            "pyroscope.io/profile-mem-enabled: \"yes\" is not \"true\" or \"false\"");
}

TEST(Labels, OfTheSourceViewAreCopied) {
  const PodPlan plan =
      PlanOf(RunningPod("p", {kScrape,
                              {"profiles.grafana.com/service_repository", "https://g/r"},
                              {"profiles.grafana.com/service_git_ref", "abc"},
                              {"profiles.grafana.com/service_root_path", "src"}}));
  EXPECT_THAT(
      plan.collections[0].labels,
      testing::UnorderedElementsAre(
          testing::Pair("service_name", "checkout"), testing::Pair("namespace", "shop"),
          testing::Pair("pod", "p"), testing::Pair("node", "n1"), testing::Pair("container", "app"),
          testing::Pair("service_repository", "https://g/r"),
          testing::Pair("service_git_ref", "abc"), testing::Pair("service_root_path", "src")));
}

}  // namespace
}  // namespace flamefleet::plan
