// SPDX-License-Identifier: Apache-2.0
// What the annotations mean in the tools that people come from, one row per key, default and trap:
// where we do the same, and where we do better. docs/annotations.md says it to users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "base/reasons.h"
#include "operator/plan/assignment.h"
#include "operator/plan/pod_plan.h"
#include "tests/operator/plan/builders.h"
#include "tests/operator/plan/describe.h"

namespace flamefleet::plan {
namespace {

constexpr const char* kP = "pyroscope.io/";
constexpr const char* kG = "profiles.grafana.com/";

struct Fact {
  const char* says;
  const char* family;
  StringMap keys;  // without the family
  std::vector<std::string> want;
};

const Fact kFacts[] = {
    {"scrape true opts in: cpu, here by eBPF without a port",
     kP,
     {{"scrape", "true"}},
     {"cpu ebpf app"}},
    {"scrape is case-sensitive", kP, {{"scrape", "True"}}, {"cpu InvalidAnnotation"}},
    {"scrape is no number", kP, {{"scrape", "1"}}, {"cpu InvalidAnnotation"}},
    {"scrape is not yes", kP, {{"scrape", "yes"}}, {"cpu InvalidAnnotation"}},
    {"scrape is matched as a whole", kP, {{"scrape", "true "}}, {"cpu InvalidAnnotation"}},
    {"scrape false is the veto", kP, {{"scrape", "false"}, {"port", "6060"}}, {"vetoed"}},
    {"without scrape the other keys do nothing",
     kP,
     {{"port", "6060"}, {"profile-cpu-enabled", "true"}, {"application-name", "a"}},
     {}},
    {"absent -enabled is on for cpu and mem, off for the rest",
     kP,
     {{"scrape", "true"}, {"port", "6060"}},
     {"cpu pull 6060/debug/pprof/profile", "memory pull 6060/debug/pprof/heap"}},
    {"no mem where nothing says how to get it", kP, {{"scrape", "true"}}, {"cpu ebpf app"}},
    {"-enabled true for each type",
     kP,
     {{"scrape", "true"},
      {"port", "6060"},
      {"profile-cpu-enabled", "true"},
      {"profile-mem-enabled", "true"},
      {"profile-goroutines-enabled", "true"},
      {"profile-mutex-enabled", "true"},
      {"profile-block-enabled", "true"}},
     {"cpu pull 6060/debug/pprof/profile", "memory pull 6060/debug/pprof/heap",
      "goroutine pull 6060/debug/pprof/goroutine", "mutex pull 6060/debug/pprof/mutex",
      "block pull 6060/debug/pprof/block"}},
    {"-enabled false",
     kP,
     {{"scrape", "true"},
      {"port", "6060"},
      {"profile-cpu-enabled", "false"},
      {"profile-mem-enabled", "false"}},
     {}},
    {"another -enabled is refused, not guessed",
     kP,
     {{"scrape", "true"}, {"port", "6060"}, {"profile-mem-enabled", "on"}},
     {"cpu pull 6060/debug/pprof/profile", "memory InvalidAnnotation"}},
    {"the types are mem and goroutines here, not memory and goroutine",
     kP,
     {{"scrape", "true"},
      {"profile-memory-enabled", "true"},
      {"profile-goroutine-enabled", "true"}},
     {"cpu ebpf app", "warning UnknownAnnotation", "warning UnknownAnnotation"}},
    {"-path replaces the path",
     kP,
     {{"scrape", "true"}, {"port", "6060"}, {"profile-cpu-path", "/c"}, {"profile-mem-path", "/m"}},
     {"cpu pull 6060/c", "memory pull 6060/m"}},
    {"-param-KEY is the parameter KEY, not _KEY",
     kP,
     {{"scrape", "true"}, {"port", "6060"}, {"profile-mem-param-gc", "1"}},
     {"cpu pull 6060/debug/pprof/profile", "memory pull 6060/debug/pprof/heap gc=1"}},
    {"-param-seconds of cpu is sent once",
     kP,
     {{"scrape", "true"},
      {"port", "6060"},
      {"profile-mem-enabled", "false"},
      {"profile-cpu-param-seconds", "30"}},
     {"cpu pull 6060/debug/pprof/profile every 30s"}},
    {"a port that is not declared is pulled from",
     kP,
     {{"scrape", "true"}, {"port", "7070"}, {"profile-mem-enabled", "false"}},
     {"cpu pull 7070/debug/pprof/profile"}},
    {"a port that is no number is refused, not ignored",
     kP,
     {{"scrape", "true"}, {"port", "http"}, {"profile-mem-enabled", "false"}},
     {"cpu InvalidAnnotation"}},
    {"https",
     kP,
     {{"scrape", "true"}, {"port", "6060"}, {"profile-mem-enabled", "false"}, {"scheme", "https"}},
     {"cpu pull 6060/debug/pprof/profile https unverified"}},
    {"another scheme is refused, not ignored",
     kP,
     {{"scrape", "true"}, {"port", "6060"}, {"profile-mem-enabled", "false"}, {"scheme", "tcp"}},
     {"cpu InvalidAnnotation"}},
    {"spy-name has no meaning and is no mistake",
     kP,
     {{"scrape", "true"}, {"spy-name", "gospy"}},
     {"cpu ebpf app"}},
    {"without application-name the pod is not lost", kP, {{"scrape", "true"}}, {"cpu ebpf app"}},

    {"a type's scrape", kG, {{"cpu.scrape", "true"}}, {"cpu ebpf app"}},
    {"scrape is case-sensitive here too", kG, {{"cpu.scrape", "TRUE"}}, {"cpu InvalidAnnotation"}},
    {"each type, each with its default path",
     kG,
     {{"memory.scrape", "true"},
      {"memory.port", "6060"},
      {"goroutine.scrape", "true"},
      {"goroutine.port", "6060"},
      {"mutex.scrape", "true"},
      {"mutex.port", "6060"},
      {"block.scrape", "true"},
      {"block.port", "6060"}},
     {"memory pull 6060/debug/pprof/allocs", "goroutine pull 6060/debug/pprof/goroutine",
      "mutex pull 6060/debug/pprof/mutex", "block pull 6060/debug/pprof/block"}},
    {"a port that is not declared is not dropped in silence",
     kG,
     {{"memory.scrape", "true"}, {"memory.port", "7070"}},
     {"memory pull 7070/debug/pprof/allocs"}},
    {"neither port nor port_name does not mean port 80",
     kG,
     {{"memory.scrape", "true"}},
     {"memory PortRequired"}},
    {"port_name is that of a declared port",
     kG,
     {{"memory.scrape", "true"}, {"memory.port_name", "pprof"}},
     {"memory pull 6060/debug/pprof/allocs"}},
    {"a port_name that nobody declares is told",
     kG,
     {{"memory.scrape", "true"}, {"memory.port_name", "http2"}},
     {"memory PortNotFound"}},
    {"port_name and port must agree",
     kG,
     {{"memory.scrape", "true"}, {"memory.port_name", "pprof"}, {"memory.port", "1"}},
     {"memory ConflictingPorts"}},
    {"path and scheme",
     kG,
     {{"memory.scrape", "true"},
      {"memory.port", "6060"},
      {"memory.path", "/m"},
      {"memory.scheme", "https"}},
     {"memory pull 6060/m https unverified"}},
    {"container picks one",
     kG,
     {{"cpu.scrape", "true"}, {"cpu.container", "app"}},
     {"cpu ebpf app"}},
    {"a container that is not there is told",
     kG,
     {{"cpu.scrape", "true"}, {"cpu.container", "web"}},
     {"cpu ContainerNotFound"}},
    {"cpu.ebpf.enabled asks on its own", kG, {{"cpu.ebpf.enabled", "true"}}, {"cpu ebpf app"}},
    {"cpu.ebpf.enabled false asks for nothing", kG, {{"cpu.ebpf.enabled", "false"}}, {}},
    {"cpu is taken once, however often it is asked for",
     kG,
     {{"cpu.ebpf.enabled", "true"}, {"cpu.scrape", "true"}, {"cpu.port", "6060"}},
     {"cpu ebpf app", "warning ConflictingAnnotations"}},
    {"fgprof, godeltaprof and java are not served and told",
     kG,
     {{"fgprof.scrape", "true"}, {"godeltaprof_mutex.scrape", "true"}, {"java.enabled", "true"}},
     {"warning UnknownAnnotation", "warning UnknownAnnotation", "warning UnknownAnnotation"}},
};

api::Pod PodOf(const char* family, const StringMap& keys) {
  StringMap annotations;
  for (const auto& [key, value] : keys)
    annotations.emplace(family + key, value);
  return RunningPod("p", annotations);
}

PodPlan PlanOf(const api::Pod& pod) {
  const BackendTable backends = DefaultBackends();
  return PlanPod({.pod = pod, .families = {true, true}, .backends = backends});
}

TEST(AnnotationFacts, EachHolds) {
  for (const Fact& fact : kFacts) {
    EXPECT_THAT(Describe(PlanOf(PodOf(fact.family, fact.keys))),
                testing::UnorderedElementsAreArray(fact.want))
        << fact.says;
  }
}

TEST(AnnotationFacts, APodIsPulledOncePerTypeHoweverManyContainersAndPortsItHas) {
  api::Pod pod = PodOf(kP, {{"scrape", "true"}, {"port", "6060"}});
  pod.containers.push_back(MainContainer("proxy", {{"pprof", 6060}, {"admin", 15000}}));
  EXPECT_THAT(Describe(PlanOf(pod)), testing::ElementsAre("cpu pull 6060/debug/pprof/profile",
                                                          "memory pull 6060/debug/pprof/heap"));
}

TEST(AnnotationFacts, InitContainersAreLeftOutAndSidecarsAreNot) {
  api::Pod pod = PodOf(kP, {{"scrape", "true"}});
  pod.containers.push_back({.name = "setup", .kind = api::ContainerKind::kInit});
  pod.containers.push_back({.name = "proxy", .kind = api::ContainerKind::kSidecar});
  EXPECT_THAT(Describe(PlanOf(pod)), testing::ElementsAre("cpu ebpf app", "cpu ebpf proxy"));
}

TEST(AnnotationFacts, TwoFamiliesTakeCpuOnce) {
  api::Pod pod = PodOf(kP, {{"scrape", "true"}, {"profile-mem-enabled", "false"}});
  pod.annotations["profiles.grafana.com/cpu.scrape"] = "true";
  pod.annotations["profiles.grafana.com/cpu.port"] = "6060";
  EXPECT_THAT(Describe(PlanOf(pod)), testing::ElementsAre("cpu pull 6060/debug/pprof/profile"));
}

TEST(AnnotationFacts, AnIpv6AddressKeepsItsPort) {
  api::Pod pod = PodOf(kP, {{"scrape", "true"}, {"port", "6060"}});
  pod.ip = "fd00::1";
  const auto assignment = AssignPod(pod, PlanOf(pod));
  ASSERT_TRUE(assignment);
  EXPECT_EQ(assignment->ip, "fd00::1");
  EXPECT_EQ(assignment->pulls.at(0).port, 6060);
}

TEST(AnnotationFacts, OnlyPodsThatRunAreCollected) {
  using api::PodPhase;
  for (const auto& [phase, collected] :
       {std::pair{PodPhase::kPending, false}, std::pair{PodPhase::kRunning, true},
        std::pair{PodPhase::kSucceeded, false}, std::pair{PodPhase::kFailed, false},
        std::pair{PodPhase::kUnknown, true}}) {
    api::Pod pod = PodOf(kP, {{"scrape", "true"}, {"port", "6060"}});
    pod.phase = phase;
    pod.ready = false;  // readiness is not asked for
    EXPECT_EQ(AssignPod(pod, PlanOf(pod)).has_value(), collected) << static_cast<int>(phase);
  }
  api::Pod pod = PodOf(kP, {{"scrape", "true"}});
  pod.meta.deleting = true;
  EXPECT_FALSE(AssignPod(pod, PlanOf(pod)));
}

// The keys of the tables of docs/annotations.md, in full, with the family of their section.
std::vector<std::string> DocumentedKeys() {
  std::vector<std::string> keys;
  std::ifstream file("docs/annotations.md");  // tests run in the root of the repository
  std::string family;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## "))
      family = line == "## pyroscope.io" ? kP : line == "## profiles.grafana.com" ? kG : "";
    if (family.empty() || !line.starts_with("| `")) continue;
    const std::string cell = line.substr(0, line.find('|', 1));
    static const std::regex kKey("`([^`]+)`");
    for (std::sregex_iterator match(cell.begin(), cell.end(), kKey), end; match != end; ++match) {
      std::string key = (*match)[1];
      key = std::regex_replace(key, std::regex("<t>"), family == kP ? "mem" : "memory");
      keys.push_back(family + std::regex_replace(key, std::regex("<key>"), "x"));
    }
  }
  return keys;
}

TEST(AnnotationFacts, EveryDocumentedKeyIsRead) {
  const std::vector<std::string> keys = DocumentedKeys();
  EXPECT_GT(keys.size(), 15U);
  for (const std::string& key : keys) {
    const PodPlan plan = PlanOf(RunningPod("p", {{key, "true"}}));
    for (const Problem& warning : plan.warnings)
      EXPECT_NE(warning.reason, reasons::kUnknownAnnotation) << key;
  }
}

}  // namespace
}  // namespace flamefleet::plan
