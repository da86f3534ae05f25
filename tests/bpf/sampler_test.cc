// SPDX-License-Identifier: Apache-2.0
// The real BPF program on the kernel of this machine.
#include "agent/sample/sampler.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include "agent/host/container_id.h"
#include "agent/sample/ring_waiter.h"
#include "base/clock.h"
#include "base/fd.h"
#include "tests/bpf/child.h"
#include "tests/bpf/perf_events.h"

namespace flamefleet::agent {
namespace {

using flamefleet::testing::Burner;
using flamefleet::testing::Child;
using flamefleet::testing::StopPerfEvents;
using flamefleet::testing::TestCgroup;

constexpr char kContainerA[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
constexpr char kContainerB[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
constexpr char kPodA[] = "kubepods/pod0aa5a3c1-0000-4000-8000-000000000001/";
constexpr char kPodB[] = "kubepods/pod0aa5a3c1-0000-4000-8000-000000000002/";

struct Recorded {
  uint32_t pid;
  uint64_t start_boottime;
  uint64_t exec_id;
  uint64_t cgroup_id;
  uint32_t kernel_frames;
  uint32_t user_frames;
  uint8_t stop;
};

class Recorder final : public SampleHandler {
 public:
  void OnSample(const RawSample& sample) override {
    samples.push_back({sample.header.pid, sample.header.start_boottime, sample.header.exec_id,
                       sample.header.cgroup_id, static_cast<uint32_t>(sample.kernel_frames.size()),
                       static_cast<uint32_t>(sample.user_frames.size()), sample.header.stop});
  }
  void OnCgroup(uint64_t id, const std::string& path) override {
    EXPECT_FALSE(paths.contains(id)) << "reported twice: " << path;
    paths[id] = path;
    if (on_cgroup) on_cgroup(id, path);
  }

  void OnEnded(const ff_ended_record& record) override {
    ended.push_back(record.process);
    last_exec_ns = record.exec_ns;
  }

  size_t EndsOf(uint32_t pid) const {
    return static_cast<size_t>(std::count_if(
        ended.begin(), ended.end(), [pid](const ff_process_key& key) { return key.pid == pid; }));
  }
  size_t SamplesOf(uint32_t pid) const {
    return static_cast<size_t>(std::count_if(samples.begin(), samples.end(),
                                             [pid](const Recorded& s) { return s.pid == pid; }));
  }

  std::vector<Recorded> samples;
  std::vector<ff_process_key> ended;
  uint64_t last_exec_ns = 0;
  std::map<uint64_t, std::string> paths;
  std::function<void(uint64_t, const std::string&)> on_cgroup;
};

std::unique_ptr<Sampler> MustCreate(const SamplerOptions& options) {
  Result<std::unique_ptr<Sampler>> sampler = Sampler::Create(options);
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return sampler.ok() ? *std::move(sampler) : nullptr;
}

// Drains until `done`; false when that takes too long.
bool DrainUntil(Sampler& sampler, Recorder& recorder, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < deadline) {
    EXPECT_TRUE(sampler.Drain(recorder).ok());
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

bool IsOf(const std::string& path, const std::string& container) {
  const std::vector<std::string> ids = ContainerIdsOfCgroup(path);
  return !ids.empty() && ids.front() == container;
}

TEST(BpfSampler, RecordsUserStacksOfEveryProcessInHostScope) {
  const Burner burner({"split"});
  const auto sampler = MustCreate({.scope = FF_SCOPE_HOST, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Recorder recorder;
  const auto with_stack = [&] {
    return std::count_if(recorder.samples.begin(), recorder.samples.end(), [&](const Recorded& s) {
      return s.pid == burner.pid() && s.user_frames >= 3;
    });
  };
  EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] { return with_stack() > 20; }));
  EXPECT_EQ(recorder.SamplesOf(0), 0u);  // the idle task
}

TEST(BpfSampler, RecordsOnlyTheSelectedProcessInPidScope) {
  const Burner wanted({"split"});
  const Burner other({"split"});
  const auto sampler =
      MustCreate({.scope = FF_SCOPE_PIDS, .pids = {wanted.pid()}, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Recorder recorder;
  EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.samples.size() > 50; }));
  EXPECT_EQ(recorder.SamplesOf(wanted.pid()), recorder.samples.size());
}

TEST(BpfSampler, JoinsKernelAndUserStack) {
  const Burner burner({"kernel"});
  const auto sampler =
      MustCreate({.scope = FF_SCOPE_PIDS, .pids = {burner.pid()}, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Recorder recorder;
  const auto joined = [&] {
    return std::count_if(recorder.samples.begin(), recorder.samples.end(), [](const Recorded& s) {
      return s.kernel_frames >= 3 && s.user_frames >= 1;
    });
  };
  EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] { return joined() > 20; }));
}

TEST(BpfSampler, RecordsOnlyWantedCgroups) {
  const TestCgroup cgroup_a(std::string(kPodA) + kContainerA);
  const TestCgroup cgroup_b(std::string(kPodB) + kContainerB);
  const Burner burner_a({"split"}, &cgroup_a);
  const Burner burner_b({"split"}, &cgroup_b);
  const auto sampler = MustCreate({.scope = FF_SCOPE_CGROUPS, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Recorder recorder;
  bool seen_b = false;
  recorder.on_cgroup = [&](uint64_t id, const std::string& path) {
    seen_b = seen_b || IsOf(path, kContainerB);
    ASSERT_TRUE(sampler->SetVerdict(id, IsOf(path, kContainerA)).ok());
  };
  EXPECT_TRUE(
      DrainUntil(*sampler, recorder, [&] { return seen_b && recorder.samples.size() > 50; }));
  EXPECT_EQ(recorder.SamplesOf(burner_a.pid()), recorder.samples.size());
  EXPECT_GT((*sampler->ReadCounters())[FF_COUNT_CGROUP_PENDING], 0u);
}

// What is reported of a cgroup; "" when it is not.
std::string PathOf(const TestCgroup& cgroup) {
  struct stat info {};
  EXPECT_EQ(::stat(cgroup.directory().c_str(), &info), 0);
  const Burner burner({"split"}, &cgroup);
  const auto sampler = MustCreate({.scope = FF_SCOPE_CGROUPS, .frequency_hz = 199});
  if (!sampler) return "";
  Recorder recorder;
  EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.paths.contains(info.st_ino); }));
  return recorder.paths[info.st_ino];
}

TEST(BpfSampler, NamesTheCgroupAndItsAncestors) {
  const TestCgroup cgroup(std::string(kPodA) + kContainerA);
  EXPECT_EQ(PathOf(cgroup), cgroup.path());
}

// As containerd makes it with another driver than the kubelet, and systemd inside of a container.
TEST(BpfSampler, NamesCgroupsWholeThatAreLongAndDeep) {
  const TestCgroup cgroup(
      "kubepods-besteffort-pod0aa5a3c1_0000_4000_8000_000000000001.slice:cri-containerd:" +
      std::string(kContainerA) + "/user.slice/user-1.slice/user@1.service/app.slice/x.service");
  const std::string path = PathOf(cgroup);
  EXPECT_EQ(path, cgroup.path());
  EXPECT_TRUE(IsOf(path, kContainerA));
}

TEST(BpfSampler, ACgroupThatIsTooDeepBelongsToNoContainer) {
  const TestCgroup cgroup(std::string(kPodA) + kContainerA + "/1/2/3/4/5/6/7/8/9/10/" + kPodB +
                          kContainerB + "/x/y");
  const std::string path = PathOf(cgroup);
  EXPECT_TRUE(path.starts_with(std::string(kContainerA) + "/1/2")) << path;
  EXPECT_TRUE(ContainerIdsOfCgroup(path).empty());
}

// Each hierarchy of cgroup v1 numbers its directories by itself.
TEST(BpfSampler, NumbersOfTwoHierarchiesAreTwoCgroups) {
  const std::string name = "/ff-test-memory-" + std::to_string(::getpid());
  const std::string directory = "/sys/fs/cgroup/memory" + name;
  if (::access("/sys/fs/cgroup/memory/cgroup.procs", F_OK) != 0)
    GTEST_SKIP() << "there is one hierarchy";
  ASSERT_EQ(::mkdir(directory.c_str(), 0755), 0);
  struct stat info {};
  ASSERT_EQ(::stat(directory.c_str(), &info), 0);
  {
    const Burner burner({"split"});
    const UniqueFd procs(::open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    const std::string pid = std::to_string(burner.pid());
    ASSERT_EQ(::write(procs.get(), pid.data(), pid.size()), static_cast<ssize_t>(pid.size()));
    const auto sampler = MustCreate({.scope = FF_SCOPE_CGROUPS, .frequency_hz = 199});
    ASSERT_TRUE(sampler);
    Recorder recorder;
    uint64_t id = 0;
    recorder.on_cgroup = [&](uint64_t cgroup_id, const std::string& path) {
      if (path == name) id = cgroup_id;
      ASSERT_TRUE(sampler->SetVerdict(cgroup_id, path == name).ok());
    };
    EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] { return !recorder.samples.empty(); }));
    EXPECT_EQ(recorder.SamplesOf(burner.pid()), recorder.samples.size());
    EXPECT_NE(id, info.st_ino) << "as a directory of another hierarchy may have";
  }
  EXPECT_EQ(::rmdir(directory.c_str()), 0);
}

TEST(BpfSampler, VerdictCanChangeLater) {
  const TestCgroup cgroup(std::string(kPodA) + kContainerA);
  const Burner burner({"split"}, &cgroup);
  const auto sampler = MustCreate({.scope = FF_SCOPE_CGROUPS, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Recorder recorder;
  uint64_t id = 0;
  recorder.on_cgroup = [&](uint64_t cgroup_id, const std::string& path) {
    if (IsOf(path, kContainerA)) id = cgroup_id;
    ASSERT_TRUE(sampler->SetVerdict(cgroup_id, false).ok());
  };
  ASSERT_TRUE(DrainUntil(*sampler, recorder, [&] { return id != 0; }));
  EXPECT_TRUE(recorder.samples.empty());
  ASSERT_TRUE(sampler->SetVerdict(id, true).ok());
  EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.samples.size() > 10; }));
  ASSERT_TRUE(sampler->SetVerdict(id, false).ok());
  ASSERT_TRUE(sampler->Drain(recorder).ok());
  const size_t before = recorder.samples.size();
  const uint64_t events = (*sampler->ReadCounters())[FF_COUNT_EVENTS];
  EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] {
    return (*sampler->ReadCounters())[FF_COUNT_EVENTS] > events + 50;
  }));
  EXPECT_EQ(recorder.samples.size(), before);
}

TEST(BpfSampler, ForgottenCgroupIsReportedAgain) {
  const TestCgroup cgroup(std::string(kPodA) + kContainerA);
  const Burner burner({"split"}, &cgroup);
  const auto sampler = MustCreate({.scope = FF_SCOPE_CGROUPS, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Recorder recorder;
  uint64_t id = 0;
  recorder.on_cgroup = [&](uint64_t cgroup_id, const std::string& path) {
    if (IsOf(path, kContainerA)) id = cgroup_id;
  };
  ASSERT_TRUE(DrainUntil(*sampler, recorder, [&] { return id != 0; }));
  recorder.paths.erase(id);
  sampler->ForgetCgroup(std::exchange(id, 0));
  EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] { return id != 0; }));
}

TEST(BpfSampler, TellsOnceThatAWantedProcessHasEnded) {
  const TestCgroup cgroup_a(std::string(kPodA) + kContainerA);
  const TestCgroup cgroup_b(std::string(kPodB) + kContainerB);
  auto wanted = std::make_unique<Burner>(std::vector<std::string>{"split"}, &cgroup_a);
  auto other = std::make_unique<Burner>(std::vector<std::string>{"split"}, &cgroup_b);
  const uint32_t pid = wanted->pid();
  const uint32_t other_pid = other->pid();
  const auto sampler = MustCreate({.scope = FF_SCOPE_CGROUPS, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Recorder recorder;
  recorder.on_cgroup = [&](uint64_t id, const std::string& path) {
    ASSERT_TRUE(sampler->SetVerdict(id, IsOf(path, kContainerA)).ok());
  };
  ASSERT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.samples.size() > 10; }));
  other.reset();
  wanted.reset();
  ASSERT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.EndsOf(pid) > 0; }));
  EXPECT_EQ(recorder.ended.size(), 1u);
  EXPECT_EQ(recorder.EndsOf(other_pid), 0u);
  EXPECT_EQ(recorder.last_exec_ns, 0u) << "it has exited";
  EXPECT_EQ(recorder.ended[0].start_boottime, recorder.samples[0].start_boottime);
  EXPECT_EQ(recorder.ended[0].exec_id, recorder.samples[0].exec_id);
}

TEST(BpfSampler, TellsThatAProcessRunsAnotherProgramNow) {
  // A shell with work to do, then another program in its place.
  Child shell("/bin/sh", {"-c",
                          "read go; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; "
                          "exec sleep 60"});
  const auto sampler =
      MustCreate({.scope = FF_SCOPE_PIDS, .pids = {shell.pid()}, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  const auto before_ns = static_cast<uint64_t>(SystemClock().MonotonicNanos());
  shell.Say("go\n");
  Recorder recorder;
  ASSERT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.EndsOf(shell.pid()) > 0; }));
  ASSERT_FALSE(recorder.samples.empty());
  EXPECT_EQ(recorder.ended[0].start_boottime, recorder.samples[0].start_boottime);
  EXPECT_EQ(recorder.ended[0].exec_id, recorder.samples[0].exec_id);
  EXPECT_GT(recorder.last_exec_ns, before_ns);
  EXPECT_LT(recorder.last_exec_ns, static_cast<uint64_t>(SystemClock().MonotonicNanos()));
}

// What is new is in the ring when the waiter returns long before its time.
TEST(BpfRingWaiter, TheFirstSampleOfAProcessEndsTheWaitAndNoLaterOneDoes) {
  const Burner burner({"split"});
  const auto sampler =
      MustCreate({.scope = FF_SCOPE_PIDS, .pids = {burner.pid()}, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Result<RingWaiter> waiter = RingWaiter::Create(sampler->ring_fd());
  ASSERT_TRUE(waiter.ok()) << waiter.status();
  Recorder recorder;
  const auto begin = std::chrono::steady_clock::now();
  const auto waited = [&] { return std::chrono::steady_clock::now() - begin; };
  waiter->Wait({}, std::chrono::minutes(2));
  EXPECT_LT(waited(), std::chrono::minutes(2));
  ASSERT_TRUE(sampler->Drain(recorder).ok());
  EXPECT_GE(recorder.SamplesOf(burner.pid()), 1u);

  const auto later = waited() + std::chrono::milliseconds(200);
  const size_t first = recorder.samples.size();
  waiter->Wait({}, std::chrono::milliseconds(200));
  EXPECT_GE(waited(), later);
  EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.samples.size() > first; }));
}

TEST(BpfRingWaiter, ANewCgroupEndsTheWait) {
  const TestCgroup cgroup(std::string(kPodA) + kContainerA);
  struct stat info {};
  ASSERT_EQ(::stat(cgroup.directory().c_str(), &info), 0);
  const auto sampler = MustCreate({.scope = FF_SCOPE_CGROUPS, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Result<RingWaiter> waiter = RingWaiter::Create(sampler->ring_fd());
  ASSERT_TRUE(waiter.ok()) << waiter.status();
  const Burner burner({"split"}, &cgroup);
  Recorder recorder;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!recorder.paths.contains(info.st_ino) && std::chrono::steady_clock::now() < deadline) {
    waiter->Wait({}, deadline - std::chrono::steady_clock::now());
    ASSERT_TRUE(sampler->Drain(recorder).ok());
  }
  EXPECT_TRUE(recorder.paths.contains(info.st_ino));
}

TEST(BpfRingWaiter, AStopEndsTheWait) {
  const auto sampler = MustCreate({.scope = FF_SCOPE_PIDS, .frequency_hz = 1});
  ASSERT_TRUE(sampler);
  Result<RingWaiter> waiter = RingWaiter::Create(sampler->ring_fd());
  ASSERT_TRUE(waiter.ok()) << waiter.status();
  std::jthread waits(
      [&](const std::stop_token& stop) { waiter->Wait(stop, std::chrono::hours(1)); });
  waits.request_stop();
  waits.join();
}

TEST(BpfSampler, CountsWhatDoesNotFitIntoTheRing) {
  const Burner burner({"split"});
  const auto sampler = MustCreate(
      {.scope = FF_SCOPE_PIDS, .pids = {burner.pid()}, .frequency_hz = 999, .ring_bytes = 4096});
  ASSERT_TRUE(sampler);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  SampleCounters counters{};
  while (counters[FF_COUNT_RING_FULL] == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    counters = *sampler->ReadCounters();
  }
  EXPECT_GT(counters[FF_COUNT_RING_FULL], 0u);
  EXPECT_GT(counters[FF_COUNT_SENT], 0u);
  Recorder recorder;
  ASSERT_TRUE(sampler->Drain(recorder).ok());
  EXPECT_GT(recorder.samples.size(), 0u);
}

TEST(BpfSampler, FrequencyCanChangeWhileItRuns) {
  const Burner burner({"split"});
  const auto sampler =
      MustCreate({.scope = FF_SCOPE_PIDS, .pids = {burner.pid()}, .frequency_hz = 1});
  ASSERT_TRUE(sampler);
  ASSERT_TRUE(sampler->SetFrequency(500).ok());
  EXPECT_EQ(sampler->PeriodNanos(), 2'000'000u);
  Recorder recorder;
  EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.samples.size() > 100; }));
  EXPECT_EQ(sampler->SetFrequency(1000).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(sampler->PeriodNanos(), 2'000'000u);
}

TEST(BpfSampler, TakesAsManyFramesAsAreAskedFor) {
  const Burner burner({"deep"});  // 400 calls
  const auto sampler =
      MustCreate({.scope = FF_SCOPE_PIDS, .pids = {burner.pid()}, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  const auto takes = [&](const std::function<bool(uint32_t frames)>& fits) {
    Recorder recorder;
    return DrainUntil(*sampler, recorder, [&] {
      return std::count_if(recorder.samples.begin(), recorder.samples.end(),
                           [&](const Recorded& s) { return fits(s.user_frames); }) > 20;
    });
  };
  EXPECT_TRUE(takes([](uint32_t frames) { return frames == kDefaultStackDepth; }));
  ASSERT_TRUE(sampler->SetStackDepth(FF_MAX_USER_FRAMES).ok());
  EXPECT_TRUE(takes([](uint32_t frames) { return frames > 400; }));
  ASSERT_TRUE(sampler->SetStackDepth(1).ok());
  EXPECT_TRUE(takes([](uint32_t frames) { return frames == 1; }));
  EXPECT_EQ(sampler->SetStackDepth(0).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(sampler->SetStackDepth(FF_MAX_USER_FRAMES + 1).code(), StatusCode::kInvalidArgument);
}

TEST(BpfSampler, CountsTheEventsOfEachCpu) {
  const Burner burner({"split"});
  const auto sampler = MustCreate({.scope = FF_SCOPE_HOST, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Recorder recorder;
  ASSERT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.samples.size() > 50; }));
  const auto events = sampler->EventsByCpu();
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_GE(events->size(), sampler->CpuCount());
  EXPECT_GE(std::accumulate(events->begin(), events->end(), uint64_t{0}), 50u);
}

TEST(BpfSampler, AStoppedEventIsHeardAgainOnceItIsReopened) {
  const Burner burner({"split"});
  const auto sampler =
      MustCreate({.scope = FF_SCOPE_PIDS, .pids = {burner.pid()}, .frequency_hz = 199});
  ASSERT_TRUE(sampler);
  Recorder recorder;
  ASSERT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.samples.size() > 10; }));
  ASSERT_EQ(StopPerfEvents(), sampler->CpuCount());
  ASSERT_TRUE(sampler->Drain(recorder).ok());
  const std::vector<uint64_t> before = *sampler->EventsByCpu();
  std::vector<int> cpus(sampler->CpuCount());
  std::iota(cpus.begin(), cpus.end(), 0);
  ASSERT_EQ(*sampler->EventsByCpu(), before);
  ASSERT_TRUE(sampler->ReopenEvents(cpus).ok());
  EXPECT_EQ(sampler->CpuCount(), cpus.size());
  const size_t heard = recorder.samples.size();
  EXPECT_TRUE(DrainUntil(*sampler, recorder, [&] { return recorder.samples.size() > heard + 10; }));
}

// Instructions that the verifier went through for the program that was loaded last.
uint32_t VerifiedInstructions() {
  uint32_t verified = 0;
  uint32_t id = 0;
  while (bpf_prog_get_next_id(id, &id) == 0) {
    const UniqueFd fd(bpf_prog_get_fd_by_id(id));
    bpf_prog_info info{};
    uint32_t size = sizeof(info);
    if (fd.ok() && bpf_obj_get_info_by_fd(fd.get(), &info, &size) == 0 &&
        std::string(info.name) == "take_sample")
      verified = info.verified_insns;
  }
  return verified;
}

// The verifier gives up at a million, and other kernels count otherwise than this one.
TEST(BpfSampler, VerifierHasATenthOfItsLimitToDoAtMost) {
  const auto sampler = MustCreate({.scope = FF_SCOPE_CGROUPS});
  ASSERT_TRUE(sampler);
  const uint32_t verified = VerifiedInstructions();
  RecordProperty("verified_instructions", static_cast<int>(verified));
  EXPECT_GT(verified, 0u);  // since Linux 5.16
  EXPECT_LT(verified, 100'000u);
}

TEST(BpfSampler, TellsTheMemoryOfItsMaps) {
  const auto small = MustCreate({.scope = FF_SCOPE_HOST, .ring_bytes = 1 << 20});
  const auto large = MustCreate({.scope = FF_SCOPE_HOST, .ring_bytes = 8 << 20});
  ASSERT_TRUE(small && large);
  EXPECT_GE(large->MapBytes(), small->MapBytes() + (7 << 20));
}

}  // namespace
}  // namespace flamefleet::agent
