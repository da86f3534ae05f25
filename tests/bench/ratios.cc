// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/ratios.h"

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>

namespace {
std::atomic<uint64_t> allocations;
}  // namespace

void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace flamefleet::bench {
namespace {

class Reporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (!run.error_occurred && run.run_type == Run::RT_Iteration)
        times[run.benchmark_name()] = run.GetAdjustedCPUTime();
    }
  }
  std::map<std::string, double> times;
};

}  // namespace

uint64_t Allocations() {
  return allocations.load(std::memory_order_relaxed);
}

int RunAndPrintRatios(int argc, char** argv, const std::vector<Ratio>& ratios) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  for (const Ratio& ratio : ratios) {
    if (!reporter.times.contains(ratio.ours) || !reporter.times.contains(ratio.theirs)) continue;
    std::printf("%-20s takes %5.2f of the CPU time of %s\n", ratio.ours.c_str(),
                reporter.times[ratio.ours] / reporter.times[ratio.theirs], ratio.theirs.c_str());
  }
  return 0;
}

}  // namespace flamefleet::bench
