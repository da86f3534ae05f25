// SPDX-License-Identifier: Apache-2.0
#include "agent/run/budget_keeper.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory_limit.h"
#include "base/reasons.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

constexpr double kMillicores = 1000;

CounterMetric CpuSeconds(Metrics* metrics, const std::string& part) {
  return metrics->Counter("flamefleet_agent_cpu_seconds_total",
                          "CPU time that the agent takes, by part: its own threads, the child that "
                          "parses files, and the sampling program in the kernel.",
                          {{"part", part}});
}

double Seconds(int64_t nanos) {
  return static_cast<double>(std::max<int64_t>(nanos, 0)) / static_cast<double>(kNanosPerSecond);
}

}  // namespace

BudgetKeeper::BudgetKeeper(CpuPipeline* pipeline, Metrics* metrics, std::chrono::nanoseconds period)
    : pipeline_(*pipeline),
      own_seconds_(CpuSeconds(metrics, "agent")),
      parser_seconds_(CpuSeconds(metrics, "parser")),
      bpf_seconds_(CpuSeconds(metrics, "bpf")),
      frequency_(metrics->Gauge("flamefleet_agent_sampling_frequency_hertz",
                                "Samples per second and CPU that are taken.")),
      budget_cores_(metrics->Gauge("flamefleet_agent_cpu_budget_cores",
                                   "CPU that the agent may take (budget.cpu); 0: no budget.")),
      limited_(
          metrics->Gauge("flamefleet_agent_sampling_limited",
                         "1 while the budget lets the agent sample or name less than wanted.")),
      memory_used_(metrics->Gauge("flamefleet_agent_memory_used_bytes",
                                  "Memory of the agent's cgroup that counts against its limit, "
                                  "file pages that can go left out; 0: there is no limit.")),
      memory_limit_(metrics->Gauge("flamefleet_agent_memory_limit_bytes",
                                   "Memory limit of the agent's cgroup; 0: there is none.")),
      shrinks_(metrics->Counter("flamefleet_agent_cache_shrinks_total",
                                "Times that caches were halved since memory was near its limit.")),
      begun_(Read()) {
  thread_ = StartThread("ff-budget", [this, period](const std::stop_token& stop) {
    while (!WaitForStop(stop, period)) {
      const MutexLock lock(&mutex_);
      MeasureCpu();
      MeasureMemory();
      Apply();
    }
  });
}

void BudgetKeeper::SetLimits(const CpuLimits& limits) {
  const MutexLock lock(&mutex_);
  if (limits == limits_ || limits.frequency_hz == 0) return;
  limits_ = limits;
  budget_.SetLimits(limits);
  budget_cores_.Set(static_cast<double>(limits.millicores) / kMillicores);
  begun_ = Read();
  Apply();
}

std::vector<NodeProblem> BudgetKeeper::Shortages() const {
  const MutexLock lock(&mutex_);
  std::vector<NodeProblem> shortages;
  if (budget_.is_limited()) shortages.push_back({reasons::kCPUBudgetReached, budget_.Describe()});
  if (memory_.halvings() > 0) {
    shortages.push_back(
        {reasons::kMemoryLimitNear, "the agent's memory is near its limit, its caches are at 1/" +
                                        std::to_string(1 << memory_.halvings()) +
                                        " of their size; raise resources.limits.memory"});
  }
  return shortages;
}

BudgetKeeper::Reading BudgetKeeper::Read() const {
  timespec own{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  const CpuPipeline::OtherCpu other = pipeline_.ReadOtherCpu();
  return {.monotonic_ns = SystemClock().MonotonicNanos(),
          .own_ns = own.tv_sec * kNanosPerSecond + own.tv_nsec,
          .parser_ns = other.parser_ns,
          .bpf_ns = other.bpf_ns};
}

void BudgetKeeper::MeasureCpu() {
  const Reading now = Read();
  own_seconds_.Increment(Seconds(now.own_ns - last_.own_ns));
  parser_seconds_.Increment(Seconds(now.parser_ns - last_.parser_ns));
  bpf_seconds_.Increment(Seconds(now.bpf_ns - last_.bpf_ns));
  last_ = now;
  const Reading begun = std::exchange(begun_, now);
  const double used = Seconds(now.own_ns - begun.own_ns) +
                      Seconds(now.parser_ns - begun.parser_ns) + Seconds(now.bpf_ns - begun.bpf_ns);
  budget_.Observe(kMillicores * used / Seconds(now.monotonic_ns - begun.monotonic_ns));
}

void BudgetKeeper::MeasureMemory() {
  const std::optional<MemoryUse> use = OwnMemoryUse();
  if (!use) return;
  memory_used_.Set(static_cast<double>(use->used));
  memory_limit_.Set(static_cast<double>(use->limit));
  if (memory_.Observe(use->used, use->limit)) shrinks_.Increment();
}

void BudgetKeeper::Apply() {
  const SamplingEffort& effort = budget_.effort();
  limited_.Set(budget_.is_limited() ? 1 : 0);
  pipeline_.SetReadsNewFiles(effort.new_names);
  pipeline_.SetCacheHalvings(memory_.halvings());
  if (effort.frequency_hz == 0 || effort.frequency_hz == applied_hz_) return;
  const Status changed = pipeline_.SetFrequency(effort.frequency_hz);
  if (!changed.ok()) {
    Log(LogLevel::kError, "sampling frequency not changed",
        {{"frequency_hz", effort.frequency_hz}, {"error", changed}});
    return;
  }
  applied_hz_ = effort.frequency_hz;
  frequency_.Set(effort.frequency_hz);
}

}  // namespace flamefleet::agent
