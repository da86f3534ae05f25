// SPDX-License-Identifier: Apache-2.0
// What reading one record from the kernel's ring costs the agent. Needs root.
#include <benchmark/benchmark.h>

#include <chrono>

#include "agent/sample/sampler.h"
#include "tests/bench/ratios.h"

namespace flamefleet::agent {
namespace {

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

// Half a second of this thread's own samples, then one drain: only the drain is timed.
void DrainRing(benchmark::State& state) {
  const Result<std::unique_ptr<Sampler>> sampler =
      Sampler::Create({.scope = FF_SCOPE_HOST, .frequency_hz = kMaxFrequencyHz});
  if (!sampler.ok()) {
    state.SkipWithError(ErrorMessage(sampler.status()).c_str());
    return;
  }
  Sum sum;
  double seconds = 0;
  uint64_t allocations = 0;
  using SteadyClock = std::chrono::steady_clock;
  for ([[maybe_unused]] auto _ : state) {
    const auto until = SteadyClock::now() + std::chrono::milliseconds(500);
    while (SteadyClock::now() < until)
      benchmark::DoNotOptimize(seconds);
    const uint64_t before = bench::Allocations();
    const auto start = SteadyClock::now();
    (*sampler)->Drain(sum).IgnoreError();
    const std::chrono::duration<double> took = SteadyClock::now() - start;
    allocations += bench::Allocations() - before;
    state.SetIterationTime(took.count());
    seconds += took.count();
  }
  const auto records = static_cast<double>(sum.records);
  state.counters["records"] = records;
  state.counters["frames/record"] = static_cast<double>(sum.frames) / records;
  state.counters["ns/record"] = seconds * 1e9 / records;
  state.counters["allocs"] = static_cast<double>(allocations);
}
BENCHMARK(DrainRing)->UseManualTime()->Iterations(10)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace flamefleet::agent

int main(int argc, char** argv) {
  return flamefleet::bench::RunAndPrintRatios(argc, argv, {});
}
