// SPDX-License-Identifier: Apache-2.0
// What reading one record from the kernel's ring costs the agent, and, by turns on the same ring, a
// program in Go with cilium/ebpf (FF_RING_PEER: tests/bench/ringpeer, built). Needs root.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "agent/sample/sampler.h"
#include "base/status.h"
#include "tests/bench/ratios.h"
#include "tests/support/bpf_maps.h"

namespace flamefleet::agent {
namespace {

using SteadyClock = std::chrono::steady_clock;

class Sum final : public SampleHandler {
 public:
  void OnSample(const RawSample& sample) override {
    ++records;
    for (const uint64_t frame : sample.kernel_frames)
      frames += frame != 0;
    for (const uint64_t frame : sample.user_frames)
      frames += frame != 0;
  }
  void OnCgroup(uint64_t, const std::string&) override {}
  uint64_t records = 0;
  uint64_t frames = 0;
};

struct Cost {
  uint64_t records = 0;
  uint64_t nanos = 0;  // of CPU: the machine may have other work
  uint64_t allocations = 0;
};

// The descriptor of this process's ring.
int RingFd() {
  return flamefleet::testing::FindBpfMap(
      [](const bpf_map_info& info) { return info.type == BPF_MAP_TYPE_RINGBUF; });
}

// The program in Go; nobody without FF_RING_PEER.
class Peer {
 public:
  Peer() {
    const char* const program = std::getenv("FF_RING_PEER");
    if (program == nullptr) return;
    int to_peer[2];
    int from_peer[2];
    FF_CHECK(::pipe2(to_peer, O_CLOEXEC) == 0 && ::pipe2(from_peer, O_CLOEXEC) == 0);
    const int ring = RingFd();
    FF_CHECK(ring >= 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(to_peer[0], STDIN_FILENO);
      ::dup2(from_peer[1], STDOUT_FILENO);
      // Not to be closed: two calls, for it may be 3 already.
      const int copy = ::fcntl(ring, F_DUPFD, 10);
      ::dup2(copy, 3);
      ::execl(program, program, nullptr);
      ::_exit(127);
    }
    ::close(to_peer[0]);
    ::close(from_peer[1]);
    ask_ = ::fdopen(to_peer[1], "w");
    answer_ = ::fdopen(from_peer[0], "r");
  }
  ~Peer() {
    if (pid_ <= 0) return;
    std::fclose(ask_);
    std::fclose(answer_);
    ::waitpid(pid_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  explicit operator bool() const { return pid_ > 0; }
  Cost Drain() {
    Cost cost;
    std::fputs("\n", ask_);
    std::fflush(ask_);
    FF_CHECK(std::fscanf(answer_, "%" SCNu64 " %" SCNu64 " %" SCNu64, &cost.records, &cost.nanos,
                         &cost.allocations) == 3);
    return cost;
  }

 private:
  pid_t pid_ = -1;
  std::FILE* ask_ = nullptr;
  std::FILE* answer_ = nullptr;
};

uint64_t CpuNanos() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

Cost DrainByUs(Sampler& sampler, Sum& sum) {
  const uint64_t records = sum.records;
  const uint64_t allocations = bench::Allocations();
  const uint64_t start = CpuNanos();
  sampler.Drain(sum).IgnoreError();
  const uint64_t took = CpuNanos() - start;
  return {sum.records - records, took, bench::Allocations() - allocations};
}

void AwaitSamples() {
  const auto until = SteadyClock::now() + std::chrono::milliseconds(500);
  while (SteadyClock::now() < until)
    benchmark::ClobberMemory();
}

double PerRecord(const Cost& cost) {
  return static_cast<double>(cost.nanos) / static_cast<double>(cost.records);
}

// Half a second of this thread's own samples, then one drain: only the drain is timed.
void DrainRing(benchmark::State& state) {
  const Result<std::unique_ptr<Sampler>> sampler =
      Sampler::Create({.scope = FF_SCOPE_HOST, .frequency_hz = kMaxFrequencyHz});
  if (!sampler.ok()) {
    state.SkipWithError(ErrorMessage(sampler.status()).c_str());
    return;
  }
  Peer peer;
  Sum sum;
  Cost ours;
  Cost theirs;
  const auto add = [](const Cost& cost, Cost& total) {
    total.records += cost.records;
    total.nanos += cost.nanos;
    total.allocations += cost.allocations;
  };
  for ([[maybe_unused]] auto _ : state) {
    AwaitSamples();
    const Cost cost = DrainByUs(**sampler, sum);
    state.SetIterationTime(static_cast<double>(cost.nanos) / 1e9);
    add(cost, ours);
    if (!peer) continue;
    AwaitSamples();
    add(peer.Drain(), theirs);
  }
  state.counters["records"] = static_cast<double>(ours.records);
  state.counters["frames/record"] =
      static_cast<double>(sum.frames) / static_cast<double>(sum.records);
  state.counters["ns/record"] = PerRecord(ours);
  state.counters["allocs"] = static_cast<double>(ours.allocations);
  if (!peer) return;
  state.counters["cilium ns/record"] = PerRecord(theirs);
  state.counters["cilium allocs"] = static_cast<double>(theirs.allocations);
  state.counters["ratio"] = PerRecord(ours) / PerRecord(theirs);
}
BENCHMARK(DrainRing)->UseManualTime()->Iterations(20)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace flamefleet::agent

int main(int argc, char** argv) {
  return flamefleet::bench::RunAndPrintRatios(argc, argv, {});
}
