// SPDX-License-Identifier: Apache-2.0
// Containers and processes that live for a moment, on the kernel of this machine.
#include <bpf/bpf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "agent/pipeline/cpu_pipeline.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "base/pprof/profile.h"
#include "tests/bpf/child.h"
#include "tests/support/bpf_maps.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using flamefleet::testing::Child;
using flamefleet::testing::TestCgroup;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr uint32_t kFrequencyHz = 499;
constexpr milliseconds kWindow{1000};
constexpr char kProcessesPerSecond[] = "300";

size_t Wanted(const char* variable, size_t least) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? least : std::max<size_t>(least, std::strtoull(text, nullptr, 10));
}

// A container of its own pod, with one process that burns in the function of its number.
class Container {
 public:
  // Of `named`.
  static constexpr size_t kNumbers = 64;
  // What the operator takes to learn the id of a container that has started.
  static constexpr milliseconds kIdTakes{300};

  Container(size_t index, milliseconds cpu_time)
      : number(index % kNumbers),
        pod_uid_(Format("0aa5a3c1-0000-4000-8000-%012zx", index)),
        id_(Format("%064zx", index + 1)),
        cgroup_("kubepods/pod" + pod_uid_ + "/" + id_),
        child_(FF_NAMED, {std::to_string(number), std::to_string(cpu_time.count())}, &cgroup_) {}

  CpuTarget Target() const {
    const bool has_id = steady_clock::now() - started_ >= kIdTakes;
    return {.container_id = has_id ? id_ : "",
            .collection = {.pod_uid = pod_uid_, .container = "main"},
            .backend = "main",
            .labels = {{"service_name", "named-" + std::to_string(number)}}};
  }
  const std::string& pod_uid() const { return pod_uid_; }

  bool HasEnded() const {
    siginfo_t info{};
    return ::waitid(P_PID, child_.pid(), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
  }

  const size_t number;
  steady_clock::time_point ended{};  // {}: it runs

 private:
  static std::string Format(const char* format, size_t value) {
    char text[80];
    std::snprintf(text, sizeof(text), format, value);
    return text;
  }

  const std::string pod_uid_;
  const std::string id_;
  const TestCgroup cgroup_;
  const Child child_;
  const steady_clock::time_point started_ = steady_clock::now();
};

// Counts the samples of each pod, and those that are of another one.
class Attribution {
 public:
  void Expect(const Container& container) {
    const std::lock_guard lock(mutex_);
    numbers_[container.pod_uid()] = container.number;
  }

  void Take(const FinishedProfile& finished) {
    pprof::Profile profile;
    const Status status = pprof::Decode(finished.pprof, {}, &profile);
    EXPECT_TRUE(status.ok()) << status;
    const std::lock_guard lock(mutex_);
    const auto number = numbers_.find(finished.collection.pod_uid);
    ASSERT_NE(number, numbers_.end()) << finished.collection.pod_uid;
    const std::string right = "Named<" + std::to_string(number->second) + ">::Burn";
    for (size_t i = 0; i < profile.samples.size(); ++i) {
      const auto count = static_cast<uint64_t>(profile.values[i] / profile.period);
      const std::string burner = BurnerOf(profile, profile.samples[i]);
      if (burner == right)
        right_ += count;
      else if (burner.empty())
        without_ += count;
      else
        wrong_ += count;
    }
  }

  uint64_t right() const { return Read(right_); }
  uint64_t without() const { return Read(without_); }  // outside of all burners
  uint64_t wrong() const { return Read(wrong_); }

 private:
  uint64_t Read(const uint64_t& count) const {
    const std::lock_guard lock(mutex_);
    return count;
  }

  static std::string BurnerOf(const pprof::Profile& profile, const pprof::Sample& sample) {
    for (uint32_t k = 0; k < sample.location_count; ++k) {
      const pprof::Location& location =
          profile.locations[profile.sample_locations[sample.first_location + k]];
      for (uint32_t line = 0; line < location.line_count; ++line) {
        const std::string name(profile.strings.Get(
            profile.functions[profile.lines[location.first_line + line].function].name));
        if (name.starts_with("Named<")) return name;
      }
    }
    return "";
  }

  mutable std::mutex mutex_;
  std::map<std::string, size_t> numbers_;  // by pod
  uint64_t right_ = 0;
  uint64_t without_ = 0;
  uint64_t wrong_ = 0;
};

// Eight at a time. FF_CONTAINERS asks for more than the test needs.
TEST(ShortLived, NoSampleOfAContainerIsUnderAnotherPod) {
  constexpr size_t kAtOnce = 8;
  constexpr milliseconds kListedAfterEnd{3000};
  const size_t count = Wanted("FF_CONTAINERS", 12);
  Metrics metrics;
  Attribution attribution;
  auto pipeline = CpuPipeline::Create(
      {.frequency_hz = kFrequencyHz, .window = kWindow}, &metrics,
      [&attribution](const FinishedProfile& profile) { attribution.Take(profile); });
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();

  const TestCgroup parent("kubepods");
  std::mt19937 random(3);
  std::uniform_int_distribution<int> lifetime(100, 400);
  std::vector<std::unique_ptr<Container>> containers;  // that run, or ended a moment ago
  milliseconds cpu_time{0};
  const auto deadline = steady_clock::now() + std::chrono::seconds(10) * count;
  for (size_t begun = 0; begun < count || !containers.empty();) {
    ASSERT_LT(steady_clock::now(), deadline);
    size_t running = 0;
    for (const std::unique_ptr<Container>& container : containers) {
      if (container->ended == steady_clock::time_point() && container->HasEnded())
        container->ended = steady_clock::now();
      running += container->ended == steady_clock::time_point();
    }
    std::erase_if(containers, [&](const std::unique_ptr<Container>& container) {
      return container->ended != steady_clock::time_point() &&
             steady_clock::now() - container->ended > kListedAfterEnd;
    });
    for (; begun < count && running < kAtOnce; ++running, ++begun) {
      // One in ten lives for up to 3 s.
      const milliseconds length{lifetime(random) * (begun % 10 == 9 ? 7 : 1)};
      containers.push_back(std::make_unique<Container>(begun, length));
      attribution.Expect(*containers.back());
      cpu_time += length;
    }
    std::vector<CpuTarget> targets;
    for (const std::unique_ptr<Container>& container : containers)
      targets.push_back(container->Target());
    (*pipeline)->SetTargets(std::move(targets));
    std::this_thread::sleep_for(milliseconds(50));
  }
  (*pipeline)->Stop();

  const double expected = static_cast<double>(cpu_time.count()) * kFrequencyHz / 1000;
  std::printf("%zu containers, %.1f s of CPU time each on average: %" PRIu64
              " samples of %.0f, %" PRIu64 " more outside of the burners: %.1f %% lost\n",
              count, static_cast<double>(cpu_time.count()) / 1000 / static_cast<double>(count),
              attribution.right(), expected, attribution.without(),
              100 * (1 - static_cast<double>(attribution.right()) / expected));
  EXPECT_EQ(attribution.wrong(), 0u);
  EXPECT_GT(static_cast<double>(attribution.right()), expected / 10);
}

// Keys of this process's BPF map of that name (which the kernel cuts at 15 characters).
size_t KeysOfMap(const std::string& name) {
  uint32_t key_size = 0;
  const int fd = flamefleet::testing::FindBpfMap([&](const bpf_map_info& info) {
    key_size = info.key_size;
    return name.substr(0, 15) == info.name;
  });
  size_t count = 0;
  std::vector<char> key(key_size);
  std::vector<char> next(key_size);
  const void* at = nullptr;
  while (bpf_map_get_next_key(fd, at, next.data()) == 0) {
    key = next;
    at = key.data();
    ++count;
  }
  return count;
}

size_t OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

size_t ResidentBytes() {
  const Result<std::string> status = ReadFile("/proc/self/status", 16 << 10);
  constexpr std::string_view kKey = "VmRSS:";
  const size_t at = status->find(kKey);
  return std::strtoull(status->c_str() + at + kKey.size(), nullptr, 10) << 10;
}

bool WaitFor(const std::function<bool()>& done) {
  return WaitUntil(done, std::chrono::minutes(3));
}

// FF_PROCESSES asks for more than the test needs.
TEST(ShortLived, ThousandsOfProcessesLeaveNothingBehind) {
  constexpr size_t kMoreMemory = 8 << 20;
  constexpr size_t kMoreFiles = 32;  // of programs that all use, and the parser's socket
  const size_t count = Wanted("FF_PROCESSES", 1500);
  const std::string pod = "0aa5a3c1-0000-4000-8000-000000000001";
  const std::string id(64, 'a');
  const TestCgroup cgroup("kubepods/pod" + pod + "/" + id);
  Metrics metrics;
  auto pipeline = CpuPipeline::Create({.frequency_hz = kFrequencyHz, .window = kWindow}, &metrics,
                                      [](const FinishedProfile&) {});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  (*pipeline)->SetTargets({{.container_id = id,
                            .collection = {.pod_uid = pod, .container = "main"},
                            .backend = "main",
                            .labels = {{"service_name", "main"}}}});
  const auto run = [&cgroup](size_t processes) {
    Child churn(FF_CHURN, {std::to_string(processes), kProcessesPerSecond, FF_BLINK}, &cgroup);
    churn.Wait();
  };
  run(count / 4);
  ASSERT_TRUE(WaitFor([&] { return (*pipeline)->SamplesSeen() > 0; }));
  ::malloc_trim(0);
  const size_t memory = ResidentBytes();
  const size_t files = OpenFiles();
  const auto begin = steady_clock::now();
  run(count);
  const std::chrono::duration<double> took = steady_clock::now() - begin;
  EXPECT_TRUE(WaitFor([] { return KeysOfMap("unwind_processes") == 0; }))
      << KeysOfMap("unwind_processes") << " processes are still prepared for unwinding";
  const bool is_given_back = WaitFor([memory] {
    ::malloc_trim(0);
    return ResidentBytes() <= memory + kMoreMemory;
  });
  const size_t memory_after = ResidentBytes();
  std::printf("%zu processes, %.0f per second: %" PRIu64 " samples; memory %zu KiB, then %zu KiB\n",
              count, static_cast<double>(count) / took.count(), (*pipeline)->SamplesSeen(),
              memory >> 10, memory_after >> 10);
  EXPECT_TRUE(is_given_back);
  EXPECT_TRUE(WaitFor([files] { return OpenFiles() <= files + kMoreFiles; })) << OpenFiles();
  (*pipeline)->Stop();
}

}  // namespace
}  // namespace flamefleet::agent
