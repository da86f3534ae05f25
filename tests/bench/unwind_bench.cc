// SPDX-License-Identifier: Apache-2.0
// What unwinding costs; run as root. Prints
//   - time of the BPF program per sample: 33 known frames without frame pointers by tables, the
//     same program with frame pointers without tables;
//   - time to build the table of a file, its memory.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <thread>

#include "agent/host/process.h"
#include "agent/sample/sampler.h"
#include "agent/stack/go_rules.h"
#include "agent/stack/unwind_table.h"
#include "agent/stack/unwinder.h"
#include "base/clock.h"
#include "tests/agent/stack/oracle_file.h"
#include "tests/bpf/child.h"

namespace flamefleet::agent {
namespace {

using flamefleet::testing::Child;
using flamefleet::testing::OracleFile;

constexpr size_t kTableBytes = 64 << 20;

struct RunTime {
  uint64_t nanos = 0;
  uint64_t runs = 0;
};

// Of the sampling program that was loaded last.
RunTime ReadRunTime() {
  RunTime time;
  uint32_t id = 0;
  while (bpf_prog_get_next_id(id, &id) == 0) {
    const UniqueFd fd(bpf_prog_get_fd_by_id(id));
    bpf_prog_info info{};
    uint32_t size = sizeof(info);
    if (!fd.ok() || bpf_obj_get_info_by_fd(fd.get(), &info, &size) != 0) continue;
    if (std::strcmp(info.name, "take_sample") != 0) continue;
    time = {info.run_time_ns, info.run_cnt};
  }
  return time;
}

class Counter final : public SampleHandler {
 public:
  explicit Counter(Unwinder* unwinder) : unwinder_(unwinder) {}
  void OnCgroup(uint64_t, const std::string&) override {}
  void OnSample(const RawSample& sample) override {
    const ProcessId id{.pid = sample.header.pid,
                       .start_boottime = sample.header.start_boottime,
                       .exec_id = sample.header.exec_id};
    const auto process = processes_.Get(id, sample.header.comm, SystemClock().MonotonicNanos());
    if (unwinder_ != nullptr && process && process->image && !process->is_announced)
      process->is_announced = unwinder_->Prepare(id, process->image);
    frames += sample.user_frames.size();
    complete += sample.header.stop == FF_STOP_COMPLETE;
    ++samples;
  }
  void Reset() { samples = frames = complete = 0; }

  size_t samples = 0;
  size_t frames = 0;
  size_t complete = 0;

 private:
  Unwinder* const unwinder_;
  ProcessTable processes_{"/proc", 1024};
};

void DrainFor(Sampler& sampler, Counter& counter, std::chrono::seconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    FF_CHECK(sampler.Drain(counter).ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

// Of a run that meets a process which is not wanted.
double SkipNanos(uint32_t frequency_hz) {
  const Child idle("/bin/sleep", {"60"});
  Result<std::unique_ptr<Sampler>> sampler =
      Sampler::Create({.scope = FF_SCOPE_PIDS, .pids = {idle.pid()}, .frequency_hz = frequency_hz});
  FF_CHECK(sampler.ok());
  const RunTime before = ReadRunTime();
  std::this_thread::sleep_for(std::chrono::seconds(4));
  const RunTime after = ReadRunTime();
  return static_cast<double>(after.nanos - before.nanos) /
         static_cast<double>(after.runs - before.runs);
}

struct Walk {
  const char* title;
  std::string program;
  std::vector<std::string> arguments;
  bool by_tables;
};

void MeasureWalk(const Walk& walk, uint32_t frequency_hz, double skip_nanos) {
  const Child one(walk.program, walk.arguments);
  const Child two(walk.program, walk.arguments);
  Result<std::unique_ptr<Sampler>> sampler = Sampler::Create(
      {.scope = FF_SCOPE_PIDS, .pids = {one.pid(), two.pid()}, .frequency_hz = frequency_hz});
  FF_CHECK(sampler.ok());
  std::unique_ptr<Unwinder> unwinder;
  if (walk.by_tables)
    unwinder = std::make_unique<Unwinder>((*sampler)->unwind_maps(), "/proc", kTableBytes);
  Counter counter(unwinder.get());
  DrainFor(**sampler, counter, std::chrono::seconds(2));
  counter.Reset();
  const RunTime before = ReadRunTime();
  const SampleCounters sent_before = *(*sampler)->ReadCounters();
  DrainFor(**sampler, counter, std::chrono::seconds(8));
  const RunTime after = ReadRunTime();
  const SampleCounters sent_after = *(*sampler)->ReadCounters();
  const uint64_t sent = sent_after[FF_COUNT_SENT] - sent_before[FF_COUNT_SENT];
  const double skipped = static_cast<double>(after.runs - before.runs - sent) * skip_nanos;
  const double nanos = static_cast<double>(after.nanos - before.nanos) - skipped;
  std::printf("%-34s %4u Hz  %6.2f us/sample  %5.1f frames  %5.1f %% complete  (%zu samples)\n",
              walk.title, frequency_hz, nanos / 1e3 / static_cast<double>(sent),
              static_cast<double>(counter.frames) / static_cast<double>(counter.samples),
              100.0 * static_cast<double>(counter.complete) / static_cast<double>(counter.samples),
              counter.samples);
}

double ThreadCpuMillis() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// CPU time. `section_bytes`: of what `build` reads.
void MeasureBuild(const std::string& path, size_t section_bytes,
                  const std::function<Result<UnwindTable>()>& build) {
  constexpr int kRounds = 3;
  double best_ms = 1e9;
  size_t rows = 0;
  size_t bytes = 0;
  for (int i = 0; i < kRounds; ++i) {
    const double start_ms = ThreadCpuMillis();
    const Result<UnwindTable> table = build();
    const double ms = ThreadCpuMillis() - start_ms;
    FF_CHECK(table.ok());
    best_ms = std::min(best_ms, ms);
    rows = table->row_count();
    bytes = table->words().size_bytes();
  }
  const double mb = static_cast<double>(section_bytes) / 1e6;
  std::printf("%-34s %5.2f MB  %6.1f ms  %5.1f ms/MB  %8zu rows  %4.2f MiB  %4.2f bytes/row\n",
              path.substr(path.rfind('/') + 1).c_str(), mb, best_ms, best_ms / mb, rows,
              static_cast<double>(bytes) / (1 << 20),
              static_cast<double>(bytes) / static_cast<double>(rows));
}

void MeasureBuild(const std::string& path) {
  if (::access(path.c_str(), R_OK) != 0) return;
  const OracleFile file(path);
  MeasureBuild(path, file.eh_frame().size(),
               [&file] { return UnwindTable::Build(file.eh_frame(), file.eh_frame_address()); });
}

void MeasureBuildOfGo(const std::string& path) {
  const Result<UniqueFd> fd = OpenFile(path, O_RDONLY);
  if (!fd.ok()) return;
  const ByteSource source(fd->get());
  const Result<ElfFile> elf = ReadElfFile(source);
  FF_CHECK(elf.ok() && elf->go_pclntab);
  const auto of_go = [&](const CfiVisitor& visit) { return ReadGoRules(source, *elf, visit); };
  MeasureBuild(path, elf->go_pclntab->size,
               [&of_go] { return UnwindTable::Build({}, 0, {}, of_go); });
}

void Run() {
  for (const char* const path :
       {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/bin/python3.11", "/usr/bin/node", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus",
        "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"})
    MeasureBuild(path);
  for (const char* const path : {"/usr/bin/containerd", "/usr/local/go/bin/go"})
    MeasureBuildOfGo(path);
  const UniqueFd statistics(bpf_enable_stats(BPF_STATS_RUN_TIME));
  FF_CHECK(statistics.ok());
  for (const uint32_t frequency_hz : {97, 997}) {
    const double skip = SkipNanos(frequency_hz);
    std::printf("%-34s %4u Hz  %6.2f us/run\n", "process that is not wanted", frequency_hz,
                skip / 1e3);
    for (const Walk& walk : {Walk{"tables, no frame pointers", FF_DEEP, {"chain"}, true},
                             Walk{"frame pointers", FF_DEEP_FP, {"chain"}, false},
                             Walk{"tables, python3",
                                  "/usr/bin/python3.11",
                                  {"-c",
                                   "def f(n):\n  return n if n < 2 else f(n-1) + f(n-2)\n"
                                   "while True: f(25)"},
                                  true}})
      MeasureWalk(walk, frequency_hz, skip);
  }
}

}  // namespace
}  // namespace flamefleet::agent

int main() {
  flamefleet::agent::Run();
  return 0;
}
