// SPDX-License-Identifier: Apache-2.0
// Stacks of programs without frame pointers, on the kernel of this machine.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "agent/host/process.h"
#include "agent/sample/sampler.h"
#include "agent/stack/unwind_table_cache.h"
#include "agent/stack/unwinder.h"
#include "agent/symbol/symbolizer.h"
#include "base/clock.h"
#include "tests/bpf/child.h"

namespace flamefleet::agent {
namespace {

using flamefleet::testing::Child;

constexpr double kGoal = 0.995;  // of the stacks are complete
constexpr size_t kSamples = 1000;
constexpr size_t kTableBytes = 64 << 20;

// Samples processes and prepares them as the pipeline does.
class Walks final : public SampleHandler {
 public:
  explicit Walks(std::vector<uint32_t> pids, uint32_t frequency_hz = 499)
      : processes_("/proc", 1024), symbolizer_("/proc", 64 << 20) {
    Result<std::unique_ptr<Sampler>> sampler = Sampler::Create(
        {.scope = FF_SCOPE_PIDS, .pids = std::move(pids), .frequency_hz = frequency_hz});
    FF_CHECK(sampler.ok());
    sampler_ = *std::move(sampler);
    unwinder_ = std::make_unique<Unwinder>(sampler_->unwind_maps(), "/proc", kTableBytes);
  }

  void OnCgroup(uint64_t, const std::string&) override {}
  void OnEnded(const ff_ended_record& record) override {
    const ff_process_key& key = record.process;
    unwinder_->End({.pid = key.pid, .start_boottime = key.start_boottime, .exec_id = key.exec_id});
  }

  void OnSample(const RawSample& sample) override {
    const ff_sample& header = sample.header;
    last_ = {.pid = header.pid, .start_boottime = header.start_boottime, .exec_id = header.exec_id};
    const int64_t now_ns = SystemClock().MonotonicNanos();
    const std::shared_ptr<Process> process = processes_.Get(last_, header.comm, now_ns);
    if (!process || !process->image) return;
    if (!process->is_announced)
      process->is_announced = unwinder_->Prepare(process->id, process->image);
    if (header.stop == FF_STOP_NOT_READY || !is_ready_[last_]) {
      is_ready_[last_] = header.stop != FF_STOP_NOT_READY && process->is_announced &&
                         unwinder_->counts().process_count > 0;
      return;
    }
    if (header.stop == FF_STOP_NONE) return;  // it is exiting and has no stack any more
    ++stops_[header.stop];
    ++total_;
    if (on_stack_) on_stack_(Names(*process->image, sample.user_frames), header.stop);
  }

  // The names of the frames, innermost first.
  std::vector<std::string> Names(const ProcessImage& image, std::span<const uint64_t> frames) {
    std::vector<std::string> names;
    for (const uint64_t frame : frames) {
      const uint64_t code = names.empty() ? frame : frame - 1;
      const ImageMapping* const mapping = image.Find(code);
      names.push_back(mapping == nullptr ? "?" : symbolizer_.UserName(image, *mapping, code).name);
    }
    return names;
  }

  bool Run(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < deadline) {
      EXPECT_TRUE(sampler_->Drain(*this).ok());
      if (done()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }
  bool Take(size_t count) {
    const size_t wanted = total_ + count;
    return Run([this, wanted] { return total_ >= wanted; });
  }

  double Complete() const {
    const auto found = stops_.find(FF_STOP_COMPLETE);
    return found == stops_.end() ? 0
                                 : static_cast<double>(found->second) / static_cast<double>(total_);
  }
  std::string Stops() const {
    std::string text;
    for (const auto& [stop, count] : stops_)
      text += " " + std::to_string(stop) + ":" + std::to_string(count);
    return text;
  }
  void OnStack(std::function<void(const std::vector<std::string>&, int stop)> visit) {
    on_stack_ = std::move(visit);
  }
  const ProcessId& last() const { return last_; }
  Unwinder& unwinder() { return *unwinder_; }
  Sampler& sampler() { return *sampler_; }

 private:
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Unwinder> unwinder_;  // before the sampler goes
  ProcessTable processes_;
  Symbolizer symbolizer_;
  ProcessId last_;
  std::unordered_map<ProcessId, bool, ProcessIdHash> is_ready_;
  std::map<int, size_t> stops_;
  size_t total_ = 0;
  std::function<void(const std::vector<std::string>&, int)> on_stack_;
};

// Burn and its callers up to Chain<15>::Run.
std::vector<std::string> KnownChain() {
  std::vector<std::string> chain{"Burn"};
  for (int i = 0; i <= 15; ++i) {
    if (i > 0) chain.emplace_back("DeepHop");
    chain.push_back("Chain<" + std::to_string(i) + ">::Run");
  }
  return chain;
}

// Checks every stack that is inside Burn; returns how many there were.
class ChainCheck {
 public:
  // The chain, then these.
  explicit ChainCheck(std::vector<std::string> callers) : expected_(KnownChain()) {
    expected_.insert(expected_.end(), callers.begin(), callers.end());
  }

  void operator()(const std::vector<std::string>& names, int) {
    if (names.empty() || names.front() != "Burn") return;
    ++inside;
    const bool same = names.size() >= expected_.size() &&
                      std::equal(expected_.begin(), expected_.end(), names.begin());
    if (same) return;
    ++wrong;
    example.clear();
    for (const std::string& name : names)
      example += name + " ";
  }

  size_t inside = 0;
  size_t wrong = 0;
  std::string example;

 private:
  std::vector<std::string> expected_;
};

void ExpectWholeChain(const std::string& program, const std::string& mode,
                      const std::vector<std::string>& callers) {
  const Child child(program, {mode});
  Walks walks({child.pid()});
  ChainCheck check(callers);
  walks.OnStack(std::ref(check));
  ASSERT_TRUE(walks.Take(kSamples));
  EXPECT_GE(walks.Complete(), kGoal) << "stops:" << walks.Stops();
  EXPECT_GT(check.inside, kSamples * 9 / 10);
  EXPECT_EQ(check.wrong, 0u) << check.example;
}

TEST(Unwind, PositionIndependentProgramIsCompleteAndNamed) {
  ExpectWholeChain(FF_DEEP, "chain", {"main"});
}

TEST(Unwind, ProgramAtAFixedAddressIsCompleteAndNamed) {
  ExpectWholeChain(FF_DEEP_FIXED, "chain", {"main"});
}

TEST(Unwind, StaticProgramIsCompleteAndNamed) {
  ExpectWholeChain(FF_DEEP_STATIC, "chain", {"main"});
}

TEST(Unwind, ProgramWithRulesForDebuggersOnlyIsCompleteAndNamed) {
  ExpectWholeChain(FF_DEEP_DEBUG_FRAME, "chain", {"main"});
}

TEST(Unwind, MadeCodeWithoutFramePointersLeadsToItsCallerWhereItsRestTellsIt) {
  ExpectWholeChain(FF_DEEP, "trampoline", {"[anonymous]", "main"});
}

TEST(Unwind, ProgramWithThousandsOfMappingsIsCompleteAndNamed) {
  ExpectWholeChain(FF_DEEP, "mappings", {"main"});
}

TEST(Unwind, ThreadIsCompleteAndNamed) {
  ExpectWholeChain(FF_DEEP, "thread", {});
}

TEST(Unwind, SignalHandlerLeadsToWhatItInterrupted) {
  const Child child(FF_DEEP, {"signal"});
  Walks walks({child.pid()});
  size_t through = 0;
  walks.OnStack([&through](const std::vector<std::string>& names, int) {
    const auto chain = std::find(names.begin(), names.end(), "Chain<15>::Run");
    const auto interrupted = std::find(names.begin(), names.end(), "Interrupted");
    through += chain < interrupted && interrupted + 1 < names.end() && *(interrupted + 1) == "main";
  });
  ASSERT_TRUE(walks.Take(kSamples));
  EXPECT_GE(walks.Complete(), kGoal) << "stops:" << walks.Stops();
  EXPECT_GT(through, kSamples * 9 / 10);
}

// What a signal has interrupted is at its instruction, not behind a call.
TEST(Unwind, AnInterruptedFunctionIsNamedFromItsFirstInstructionOn) {
  const Child child(FF_DEEP, {"trap"});
  Walks walks({child.pid()});
  size_t trapped = 0;
  size_t wrong = 0;
  walks.OnStack([&](const std::vector<std::string>& names, int) {
    trapped += std::ranges::count(names, "Trap") > 0 ? 1 : 0;
    wrong += std::ranges::count(names, "BeforeTrap") > 0 ? 1 : 0;
  });
  ASSERT_TRUE(walks.Take(kSamples));
  EXPECT_GT(trapped, kSamples * 9 / 10);
  EXPECT_EQ(wrong, 0u);
}

TEST(Unwind, PythonIsComplete) {
  const Child child(
      "/usr/bin/python3.11",
      {"-c", "def f(n):\n  return n if n < 2 else f(n-1) + f(n-2)\nwhile True: f(25)"});
  Walks walks({child.pid()});
  ASSERT_TRUE(walks.Take(kSamples));
  EXPECT_GE(walks.Complete(), kGoal) << "stops:" << walks.Stops();
}

TEST(Unwind, XzIsComplete) {
  const Child child("/bin/sh", {"-c", "exec xz -9 -c < " FF_LARGE_FILE " > /dev/null"});
  Walks walks({child.pid()});
  ASSERT_TRUE(walks.Take(kSamples));
  EXPECT_GE(walks.Complete(), kGoal) << "stops:" << walks.Stops();
}

TEST(Unwind, ExecInPlaceDoesNotMixTwoPrograms) {
  const Child child(FF_DEEP, {"exec", FF_DEEP_STATIC});
  Walks walks({child.pid()});
  ChainCheck check({"main"});
  std::map<uint64_t, size_t> samples_by_exec;
  walks.OnStack([&](const std::vector<std::string>& names, int stop) {
    check(names, stop);
    ++samples_by_exec[walks.last().exec_id];
  });
  ASSERT_TRUE(walks.Run(
      [&] { return samples_by_exec.size() == 2 && samples_by_exec.rbegin()->second > 200; }));
  EXPECT_GT(samples_by_exec.begin()->second, 50u);
  EXPECT_EQ(check.wrong, 0u) << check.example;
  EXPECT_GE(walks.Complete(), kGoal) << "stops:" << walks.Stops();
}

TEST(Unwind, PidThatIsUsedAgainDoesNotMixTwoPrograms) {
  auto first = std::make_unique<Child>(FF_DEEP, std::vector<std::string>{"chain"});
  const uint32_t pid = first->pid();
  Walks walks({pid});
  ChainCheck check({"main"});
  walks.OnStack(std::ref(check));
  ASSERT_TRUE(walks.Take(100));
  const ProcessId first_id = walks.last();
  first.reset();
  const Child second(FF_DEEP_STATIC, {"chain"}, nullptr, static_cast<pid_t>(pid));
  ASSERT_TRUE(walks.Take(200));
  EXPECT_EQ(walks.last().pid, first_id.pid);
  EXPECT_NE(walks.last(), first_id);
  EXPECT_EQ(check.wrong, 0u) << check.example;
  EXPECT_GE(walks.Complete(), kGoal) << "stops:" << walks.Stops();
}

TEST(Unwind, ProcessThatHasEndedIsForgotten) {
  auto child = std::make_unique<Child>(FF_DEEP, std::vector<std::string>{"chain"});
  Walks walks({child->pid()});
  ASSERT_TRUE(walks.Run([&] { return walks.unwinder().counts().process_count == 1; }));
  child.reset();
  EXPECT_TRUE(walks.Run([&] { return walks.unwinder().counts().process_count == 0; }));
}

// A library of this machine, as if it were mapped whole.
ImageMapping MappingOf(const std::string& path) {
  auto file = std::make_shared<MappedFile>();
  file->fd.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  FF_CHECK(::fstat(file->fd.get(), &info) == 0);
  file->device = info.st_dev;
  file->inode = info.st_ino;
  file->size = static_cast<uint64_t>(info.st_size);
  return {.start = 0x10000000, .end = 0x10000000 + file->size, .path = path, .file = file};
}

TEST(UnwindTableCache, OldTableMakesRoomAndComesBack) {
  constexpr int64_t kMinute = kIdleTableNanos;
  const auto sampler = Sampler::Create({.scope = FF_SCOPE_HOST, .frequency_hz = 1});
  ASSERT_TRUE(sampler.ok());
  const ImageMapping libc = MappingOf("/usr/lib/x86_64-linux-gnu/libc.so.6");
  const ImageMapping other = MappingOf("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
  constexpr size_t kRoomForOne = 200 << 10;
  UnwindTableCache cache((*sampler)->unwind_maps(), kRoomForOne, ParserProcess::Installed());
  const uint32_t first = cache.Resolve(libc, 1).table;
  EXPECT_NE(first, 0u);
  // It is in use: the other has to wait.
  EXPECT_EQ(cache.Resolve(other, 2).table, 0u);
  EXPECT_EQ(cache.counts().no_room, 1u);
  EXPECT_TRUE(cache.Touch(first, 3));
  // Nobody has touched it for long.
  EXPECT_NE(cache.Resolve(other, 4 + 2 * kMinute).table, 0u);
  EXPECT_EQ(cache.counts().evicted, 1u);
  EXPECT_FALSE(cache.Touch(first, 5 + 2 * kMinute));
  EXPECT_LE(cache.Bytes(), kRoomForOne);
  // Its process is sampled again.
  const uint32_t again = cache.Resolve(libc, 6 + 4 * kMinute).table;
  EXPECT_NE(again, 0u);
  EXPECT_NE(again, first);
}

TEST(UnwindTableCache, KeepsWhatIsMappedAndDropsTheRest) {
  const auto sampler = Sampler::Create({.scope = FF_SCOPE_HOST, .frequency_hz = 1});
  ASSERT_TRUE(sampler.ok());
  UnwindTableCache cache((*sampler)->unwind_maps(), kTableBytes, ParserProcess::Installed());
  const uint32_t table = cache.Resolve(MappingOf("/usr/lib/x86_64-linux-gnu/libc.so.6"), 0).table;
  cache.Sweep({table}, 2 * kIdleTableNanos);
  EXPECT_EQ(cache.size(), 1u);
  cache.Sweep({}, 2 * kIdleTableNanos);
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.Bytes(), 0u);
}

TEST(UnwindTableCache, FileBeyondTheBudgetHasNoTable) {
  const auto sampler = Sampler::Create({.scope = FF_SCOPE_HOST, .frequency_hz = 1});
  ASSERT_TRUE(sampler.ok());
  UnwindTableCache cache((*sampler)->unwind_maps(), 1 << 10, ParserProcess::Installed());
  EXPECT_EQ(cache.Resolve(MappingOf("/usr/lib/x86_64-linux-gnu/libc.so.6"), 0).table, 0u);
  EXPECT_EQ(cache.counts().too_large, 1u);
}

TEST(Unwind, ProcessesShareTables) {
  const Child one(FF_DEEP, {"chain"});
  const Child two(FF_DEEP, {"chain"});
  Walks walks({one.pid(), two.pid()});
  ASSERT_TRUE(walks.Run([&] { return walks.unwinder().counts().process_count == 2; }));
  const UnwinderCounts counts = walks.unwinder().counts();
  EXPECT_EQ(counts.table_count, counts.tables.built);
  // deep, its library, libstdc++, libm, libgcc_s, libc, ld.so, the vdso
  EXPECT_EQ(counts.table_count, 8u);
  EXPECT_LT(counts.table_bytes, 1u << 20);
}

}  // namespace
}  // namespace flamefleet::agent
