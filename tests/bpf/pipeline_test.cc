// SPDX-License-Identifier: Apache-2.0
// From a running program to its finished profile, on the kernel of this machine.
#include "agent/pipeline/cpu_pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "base/metrics.h"
#include "base/pprof/profile.h"
#include "tests/bpf/child.h"
#include "tests/bpf/perf_events.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using flamefleet::testing::Burner;
using flamefleet::testing::StopPerfEvents;
using flamefleet::testing::TestCgroup;
using ::testing::ContainsRegex;

constexpr char kContainerA[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
constexpr char kContainerB[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
constexpr char kPodA[] = "kubepods/pod0aa5a3c1-0000-4000-8000-000000000001/";
constexpr char kPodB[] = "kubepods/pod0aa5a3c1-0000-4000-8000-000000000002/";

// What the sink got; decodes on demand.
class Profiles {
 public:
  CpuPipeline::Sink Sink() {
    return [this](FinishedProfile profile) {
      const std::lock_guard lock(mutex_);
      profiles_.push_back(std::move(profile));
      changed_.notify_all();
    };
  }

  // Waits until the profiles hold that many samples in all.
  bool WaitForSamples(uint64_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(3), [this, count] {
      uint64_t total = 0;
      for (const FinishedProfile& profile : profiles_)
        total += profile.samples;
      return total >= count;
    });
  }

  std::vector<FinishedProfile> Take() {
    const std::lock_guard lock(mutex_);
    return profiles_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FinishedProfile> profiles_;
};

pprof::Profile Decode(const FinishedProfile& finished) {
  pprof::Profile profile;
  const Status status = pprof::Decode(finished.pprof, {}, &profile);
  EXPECT_TRUE(status.ok()) << status;
  return profile;
}

using Stack = std::vector<std::string>;  // names, innermost first

void ForEachStack(const pprof::Profile& profile,
                  const std::function<void(const Stack&, int64_t value)>& visit) {
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const pprof::Sample& sample = profile.samples[i];
    Stack stack;
    for (uint32_t k = 0; k < sample.location_count; ++k) {
      const pprof::Location& location =
          profile.locations[profile.sample_locations[sample.first_location + k]];
      stack.emplace_back(
          profile.strings.Get(profile.functions[profile.lines[location.first_line].function].name));
    }
    visit(stack, profile.values[i]);
  }
}

bool Has(const Stack& stack, const std::string& name) {
  return std::find(stack.begin(), stack.end(), name) != stack.end();
}

int64_t ValueWith(const std::vector<FinishedProfile>& profiles, const std::string& name) {
  int64_t sum = 0;
  for (const FinishedProfile& finished : profiles) {
    ForEachStack(Decode(finished), [&](const Stack& stack, int64_t value) {
      if (Has(stack, name)) sum += value;
    });
  }
  return sum;
}

std::unique_ptr<CpuPipeline> MustCreate(const CpuPipelineOptions& options, Metrics* metrics,
                                        Profiles* profiles) {
  Result<std::unique_ptr<CpuPipeline>> pipeline =
      CpuPipeline::Create(options, metrics, profiles->Sink());
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return pipeline.ok() ? *std::move(pipeline) : nullptr;
}

CpuPipelineOptions HostOptions(uint32_t pid, uint32_t frequency_hz) {
  return {.scope = CpuPipelineOptions::Scope::kHost,
          .pids = {pid},
          .frequency_hz = frequency_hz,
          .window = std::chrono::milliseconds(1000)};
}

CpuTarget Target(const std::string& container_id, const std::string& service) {
  return {.container_id = container_id,
          .collection = {.pod_uid = service + "-uid", .container = "main"},
          .backend = "main",
          .labels = {{"service_name", service}}};
}

bool WaitFor(const std::function<bool()>& done) {
  return WaitUntil(done, std::chrono::minutes(1));
}

TEST(CpuPipeline, FindsTheSharesOfAProgram) {
  const Burner burner({"split"});
  Metrics metrics;
  Profiles profiles;
  const auto pipeline = MustCreate(HostOptions(burner.pid(), 499), &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  ASSERT_TRUE(profiles.WaitForSamples(1500));
  pipeline->Stop();
  const auto seventy = static_cast<double>(ValueWith(profiles.Take(), "BurnSeventy"));
  const auto thirty = static_cast<double>(ValueWith(profiles.Take(), "BurnThirty"));
  EXPECT_NEAR(seventy / (seventy + thirty), 0.70, 0.05);
  EXPECT_GE(pipeline->SamplesSeen(), 1500u);
}

TEST(CpuPipeline, NamesTheWholeChainDemangled) {
  const Burner burner({"split"});
  Metrics metrics;
  Profiles profiles;
  const auto pipeline = MustCreate(HostOptions(burner.pid(), 199), &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  ASSERT_TRUE(profiles.WaitForSamples(100));
  pipeline->Stop();
  const std::vector<FinishedProfile> finished = profiles.Take();
  int64_t seventy = 0;
  int64_t whole_chain = 0;
  for (const FinishedProfile& one : finished) {
    EXPECT_EQ(one.labels, (Labels{{"service_name", "burner"}}));
    const pprof::Profile profile = Decode(one);
    EXPECT_EQ(profile.time_ns, one.time_ns);
    EXPECT_EQ(profile.period, 1'000'000'000 / 199);
    EXPECT_EQ(profile.strings.Get(profile.sample_types.at(0).type), "cpu");
    EXPECT_EQ(profile.strings.Get(profile.sample_types.at(0).unit), "nanoseconds");
    EXPECT_EQ(pprof::TotalValue(profile, 0), static_cast<int64_t>(one.samples) * profile.period);
    EXPECT_TRUE(profile.strings.Get(profile.mappings.at(0).file_name).ends_with("/burner"));
    ForEachStack(profile, [&](const Stack& stack, int64_t value) {
      const auto at = std::find(stack.begin(), stack.end(), "BurnSeventy");
      if (at == stack.end()) return;
      seventy += value;
      if (stack.end() - at >= 3 && *(at + 1) == "demo::Work<long>::Run" && *(at + 2) == "main")
        whole_chain += value;
    });
  }
  // In its first and last instruction a function has no frame yet or no more.
  EXPECT_GT(whole_chain, seventy * 9 / 10);
}

TEST(CpuPipeline, OpensTimersAgainThatHaveFallenSilent) {
  const Burner burner({"split"});
  Metrics metrics;
  Profiles profiles;
  const auto pipeline = MustCreate(HostOptions(burner.pid(), 499), &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  ASSERT_TRUE(profiles.WaitForSamples(100));
  ASSERT_GT(StopPerfEvents(), 0u);
  const uint64_t heard = pipeline->SamplesSeen();
  // Without new timers no more are heard than were in the ring, those of a drain.
  EXPECT_TRUE(profiles.WaitForSamples(heard + 300));
  pipeline->Stop();
  EXPECT_THAT(metrics.RenderText(),
              ContainsRegex("flamefleet_agent_sampling_timers_reopened_total [1-9]"));
}

TEST(CpuPipeline, JoinsNamedKernelFramesOntoUserFrames) {
  const Burner burner({"kernel"});
  Metrics metrics;
  Profiles profiles;
  const auto pipeline = MustCreate(HostOptions(burner.pid(), 199), &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  ASSERT_TRUE(profiles.WaitForSamples(100));
  pipeline->Stop();
  int64_t joined = 0;
  int64_t total = 0;
  bool maps_kernel = false;  // not in each profile: a starved program may have had no kernel frame
  for (const FinishedProfile& finished : profiles.Take()) {
    const pprof::Profile profile = Decode(finished);
    maps_kernel |= std::ranges::any_of(profile.mappings, [&](const pprof::Mapping& mapping) {
      return profile.strings.Get(mapping.file_name) == "[kernel.kallsyms]";
    });
    ForEachStack(profile, [&](const Stack& stack, int64_t value) {
      total += value;
      const auto user = std::find(stack.begin(), stack.end(), "BurnInKernel");
      const auto kernel = std::find(stack.begin(), stack.end(), "ksys_read");
      if (kernel < user && user != stack.end()) joined += value;
    });
  }
  EXPECT_TRUE(maps_kernel);
  EXPECT_GT(static_cast<double>(joined) / static_cast<double>(total), 0.5);
}

TEST(CpuPipeline, NamesAProgramThatHasEnded) {
  Metrics metrics;
  Profiles profiles;
  CpuPipelineOptions options{.scope = CpuPipelineOptions::Scope::kHost,
                             .frequency_hz = 199,
                             .window = std::chrono::minutes(10)};
  const auto pipeline = MustCreate(options, &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  Burner burner({"once", "1"});
  burner.Wait();
  pipeline->Stop();  // the window is symbolized now
  std::vector<FinishedProfile> of_burner = profiles.Take();
  std::erase_if(of_burner, [](const FinishedProfile& profile) {
    return profile.labels.at("service_name") != "burner";
  });
  EXPECT_GT(ValueWith(of_burner, "BurnOnce"), 500'000'000);
}

TEST(CpuPipeline, ProfilesOnlyTargets) {
  const TestCgroup cgroup_a(std::string(kPodA) + kContainerA);
  const TestCgroup cgroup_b(std::string(kPodB) + kContainerB);
  const Burner burner_a({"split"}, &cgroup_a);
  const Burner burner_b({"split"}, &cgroup_b);
  Metrics metrics;
  Profiles profiles;
  const auto pipeline = MustCreate({.frequency_hz = 199, .window = std::chrono::milliseconds(1000)},
                                   &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  pipeline->SetTargets({Target(kContainerA, "a")});
  ASSERT_TRUE(profiles.WaitForSamples(200));
  pipeline->Stop();
  std::set<int64_t> times;
  for (const FinishedProfile& profile : profiles.Take()) {
    EXPECT_EQ(profile.collection, (CollectionKey{"a-uid", "main", ProfileType::kCpu}));
    EXPECT_EQ(profile.backend, "main");
    EXPECT_TRUE(times.insert(profile.time_ns).second) << "two profiles of one time";
  }
}

TEST(CpuPipeline, ProfilesTheHostByServiceOrNameWhereThatIsAskedFor) {
  const TestCgroup service("ff-burner.service/inner");
  const TestCgroup no_service("ff-burner.slice");
  const TestCgroup pod(std::string(kPodA) + kContainerA);
  const Burner in_service({"split"}, &service);
  const Burner in_none({"split"}, &no_service);
  const Burner in_pod({"kernel"}, &pod);
  Metrics metrics;
  Profiles profiles;
  const auto pipeline = MustCreate({.frequency_hz = 199, .window = std::chrono::milliseconds(1000)},
                                   &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  pipeline->SetLines(false);  // there may be large programs around
  const HostSeries host{.backend = "main", .labels = {{"node", "n1"}}};
  pipeline->SetTargets({}, host);
  const auto services = [&] {
    std::set<std::string> names;
    for (const FinishedProfile& profile : profiles.Take())
      names.insert(profile.labels.at("service_name"));
    return names;
  };
  // A process without a service is called after its name.
  EXPECT_TRUE(WaitFor(
      [&] { return services().contains("ff-burner.service") && services().contains("burner"); }));
  pipeline->SetTargets({Target(kContainerA, "a")});  // the host no longer
  const auto of_pod = [&] {
    std::vector<FinishedProfile> some = profiles.Take();
    std::erase_if(some, [](const FinishedProfile& profile) {
      return profile.labels.at("service_name") != "a";
    });
    return some;
  };
  ASSERT_TRUE(WaitFor([&] { return of_pod().size() >= 3; }));
  pipeline->Stop();
  EXPECT_GT(ValueWith(of_pod(), "BurnInKernel"), 0);
  const int64_t change_ns = of_pod().front().time_ns;  // this window may have both
  for (const FinishedProfile& profile : profiles.Take()) {
    if (profile.labels.at("service_name") == "a") continue;
    EXPECT_LE(profile.time_ns, change_ns);
    EXPECT_EQ(profile.collection, CollectionKey());
    EXPECT_EQ(profile.backend, "main");
    EXPECT_EQ(profile.labels.at("node"), "n1");
    EXPECT_EQ(ValueWith({profile}, "BurnInKernel"), 0) << "of a pod";
  }
}

// Of the pod that kPodA is the cgroup of.
CpuTarget TargetOfPodA(const std::string& container_id) {
  CpuTarget target = Target(container_id, "a");
  target.collection.pod_uid = "0aa5a3c1-0000-4000-8000-000000000001";
  return target;
}

double DroppedUnknown(const Metrics& metrics) {
  const std::string name = "flamefleet_agent_samples_dropped_total{reason=\"container_unknown\"} ";
  const std::string text = metrics.RenderText();
  const size_t at = text.find(name);
  EXPECT_NE(at, std::string::npos);
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + name.size(), nullptr);
}

TEST(CpuPipeline, SamplesOfAContainerThatIsNotKnownYetWaitForIt) {
  const TestCgroup cgroup(std::string(kPodA) + kContainerA);
  Metrics metrics;
  Profiles profiles;
  const auto pipeline =
      MustCreate({.frequency_hz = 199, .window = std::chrono::minutes(10)}, &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  pipeline->SetTargets({TargetOfPodA("")});
  {
    const Burner burner({"split"}, &cgroup);
    ASSERT_TRUE(WaitFor([&] { return pipeline->SamplesSeen() >= 50; }));
  }  // it has ended before anybody knows whose it was
  pipeline->SetTargets({TargetOfPodA(kContainerA)});
  pipeline->Stop();
  ASSERT_TRUE(profiles.WaitForSamples(50));
  EXPECT_GT(ValueWith(profiles.Take(), "BurnSeventy"), 0);
  EXPECT_EQ(DroppedUnknown(metrics), 0);
}

TEST(CpuPipeline, SamplesOfAContainerThatStaysUnknownAreDroppedAndCounted) {
  const TestCgroup cgroup(std::string(kPodA) + kContainerB);
  const Burner burner({"split"}, &cgroup);
  Metrics metrics;
  Profiles profiles;
  const auto pipeline = MustCreate({.frequency_hz = 199, .window = std::chrono::milliseconds(500)},
                                   &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  pipeline->SetTargets({TargetOfPodA(kContainerA)});
  EXPECT_TRUE(WaitFor([&] { return DroppedUnknown(metrics) > 0; }));
  pipeline->Stop();
  EXPECT_TRUE(profiles.Take().empty());
}

TEST(CpuPipeline, TellsThreadsApartWhereThatIsAskedFor) {
  const TestCgroup a(std::string(kPodA) + kContainerA);
  const Burner burner({"threads"}, &a);
  Metrics metrics;
  Profiles profiles;
  const auto pipeline = MustCreate({.frequency_hz = 199, .window = std::chrono::milliseconds(1000)},
                                   &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  CpuTarget target = Target(kContainerA, "a");
  target.thread_labels = true;
  pipeline->SetTargets({target});
  ASSERT_TRUE(profiles.WaitForSamples(300));
  pipeline->Stop();
  std::map<std::string, int64_t> values;  // by thread and what it burns
  std::map<std::string, std::set<std::string>> ids;
  for (const FinishedProfile& finished : profiles.Take()) {
    const pprof::Profile profile = Decode(finished);
    size_t number = 0;
    ForEachStack(profile, [&](const Stack& stack, int64_t value) {
      const pprof::Sample& sample = profile.samples[number++];
      std::map<std::string_view, std::string> labels;
      for (uint32_t i = 0; i < sample.label_count; ++i) {
        const pprof::Label& label = profile.sample_labels[sample.first_label + i];
        labels[profile.strings.Get(label.key)] = profile.strings.Get(label.text);
      }
      EXPECT_EQ(labels.size(), 2u);
      const std::string name = labels["thread_name"];
      ids[name].insert(labels["thread_id"]);
      for (const char* const burnt : {"BurnSeventy", "BurnThirty"}) {
        if (Has(stack, burnt)) values[name + " " + burnt] += value;
      }
    });
  }
  EXPECT_GT(values["left BurnSeventy"], 0);
  EXPECT_GT(values["right BurnThirty"], 0);
  EXPECT_EQ(values["left BurnThirty"] + values["right BurnSeventy"], 0);
  EXPECT_EQ(ids["left"].size(), 1u);
  EXPECT_EQ(ids["right"].size(), 1u);
  EXPECT_NE(ids["left"], ids["right"]);
}

TEST(CpuPipeline, FollowsTargetsThatChange) {
  const TestCgroup cgroup_a(std::string(kPodA) + kContainerA);
  const TestCgroup cgroup_b(std::string(kPodB) + kContainerB);
  const Burner burner_a({"split"}, &cgroup_a);
  const Burner burner_b({"split"}, &cgroup_b);
  Metrics metrics;
  Profiles profiles;
  const auto pipeline = MustCreate({.frequency_hz = 199, .window = std::chrono::milliseconds(500)},
                                   &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  pipeline->SetTargets({Target(kContainerA, "a")});
  ASSERT_TRUE(profiles.WaitForSamples(50));
  pipeline->SetTargets({Target(kContainerB, "b")});
  ASSERT_TRUE(profiles.WaitForSamples(200));
  pipeline->Stop();
  // All of a, then perhaps one window of both, then all of b.
  std::vector<FinishedProfile> finished = profiles.Take();
  const auto first_b = std::find_if(finished.begin(), finished.end(), [](const auto& profile) {
    return profile.labels.at("service_name") == "b";
  });
  ASSERT_NE(first_b, finished.end());
  for (auto it = first_b; it != finished.end(); ++it) {
    if (it->time_ns > first_b->time_ns) {
      EXPECT_EQ(it->labels.at("service_name"), "b");
    }
  }
}

TEST(CpuPipeline, OneWindowHoldsOneFrequency) {
  const Burner burner({"split"});
  Metrics metrics;
  Profiles profiles;
  const auto pipeline = MustCreate(HostOptions(burner.pid(), 99), &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  ASSERT_TRUE(profiles.WaitForSamples(20));
  ASSERT_TRUE(pipeline->SetFrequency(500).ok());
  ASSERT_TRUE(profiles.WaitForSamples(1000));
  pipeline->Stop();
  for (const FinishedProfile& finished : profiles.Take()) {
    const pprof::Profile profile = Decode(finished);
    EXPECT_TRUE(profile.period == 10'101'010 || profile.period == 2'000'000) << profile.period;
    for (const int64_t value : profile.values)
      EXPECT_EQ(value % profile.period, 0);
  }
  EXPECT_EQ(pipeline->SetFrequency(0).code(), StatusCode::kInvalidArgument);
}

TEST(CpuPipeline, StopIsIdempotent) {
  Metrics metrics;
  Profiles profiles;
  const auto pipeline =
      MustCreate({.scope = CpuPipelineOptions::Scope::kHost}, &metrics, &profiles);
  ASSERT_TRUE(pipeline);
  pipeline->Stop();
  pipeline->Stop();
}

}  // namespace
}  // namespace flamefleet::agent
