// SPDX-License-Identifier: Apache-2.0
// BudgetKeeper: measures what the agent uses and has the pipeline do as CpuBudget and MemoryBudget
// decide.
//
// What counts as CPU: all threads of this process, the parsing child, and the run time of the
// sampling program, which the kernel charges to whoever it interrupts. (What the interrupt itself
// costs is in no account.)
//
// Thread: all methods from any; it owns "ff-budget". `pipeline` and `metrics` must outlive it.
// Errors: a frequency that the kernel does not take is logged, what was in force goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "agent/control/report.h"
#include "agent/health/cpu_budget.h"
#include "agent/health/memory_budget.h"
#include "agent/pipeline/cpu_pipeline.h"
#include "base/metrics.h"
#include "base/mutex.h"

namespace flamefleet::agent {

// As long as a window: a change ends one.
constexpr std::chrono::seconds kBudgetPeriod{10};

class BudgetKeeper {
 public:
  BudgetKeeper(CpuPipeline* pipeline, Metrics* metrics,
               std::chrono::nanoseconds period = kBudgetPeriod);
  BudgetKeeper(const BudgetKeeper&) = delete;
  BudgetKeeper& operator=(const BudgetKeeper&) = delete;

  void SetLimits(const CpuLimits& limits);

  // What is done less than wanted, and why.
  std::vector<NodeProblem> Shortages() const;

 private:
  struct Reading {
    int64_t monotonic_ns = 0;
    int64_t own_ns = 0;
    int64_t parser_ns = 0;
    int64_t bpf_ns = 0;
  };

  Reading Read() const;
  void MeasureCpu() FF_REQUIRES(mutex_);
  void MeasureMemory() FF_REQUIRES(mutex_);
  void Apply() FF_REQUIRES(mutex_);

  CpuPipeline& pipeline_;
  CounterMetric own_seconds_;
  CounterMetric parser_seconds_;
  CounterMetric bpf_seconds_;
  GaugeMetric frequency_;
  GaugeMetric budget_cores_;
  GaugeMetric limited_;
  GaugeMetric memory_used_;
  GaugeMetric memory_limit_;
  CounterMetric shrinks_;

  mutable Mutex mutex_;
  CpuBudget budget_ FF_GUARDED_BY(mutex_);
  MemoryBudget memory_ FF_GUARDED_BY(mutex_);
  CpuLimits limits_ FF_GUARDED_BY(mutex_);
  uint32_t applied_hz_ FF_GUARDED_BY(mutex_) = 0;
  Reading last_ FF_GUARDED_BY(mutex_);   // of the metrics
  Reading begun_ FF_GUARDED_BY(mutex_);  // when the effort that is in force began, or later

  std::jthread thread_;  // last: joined first
};

}  // namespace flamefleet::agent
