// SPDX-License-Identifier: Apache-2.0
// The CPU budget on the kernel of this machine: sampling slows down and speeds up again, and what
// the profiles add up to stays the CPU time of the load.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <mutex>
#include <set>
#include <stop_token>
#include <thread>
#include <vector>

#include "agent/pipeline/cpu_pipeline.h"
#include "agent/run/budget_keeper.h"
#include "base/metrics.h"
#include "base/pprof/profile.h"
#include "base/reasons.h"
#include "base/thread.h"
#include "tests/bpf/child.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kFrequency = 499;

// What the profiles add up to, and the periods that they have.
class Totals {
 public:
  CpuPipeline::Sink Sink() {
    return [this](const FinishedProfile& finished) {
      pprof::Profile profile;
      ASSERT_TRUE(pprof::Decode(finished.pprof, {}, &profile).ok());
      const std::lock_guard lock(mutex_);
      periods_.insert(profile.period);
      for (const int64_t value : profile.values)
        nanos_ += value;
    };
  }
  int64_t nanos() const {
    const std::lock_guard lock(mutex_);
    return nanos_;
  }
  std::set<int64_t> periods() const {
    const std::lock_guard lock(mutex_);
    return periods_;
  }

 private:
  mutable std::mutex mutex_;
  int64_t nanos_ = 0;
  std::set<int64_t> periods_;
};

int64_t CpuNanosOf(uint32_t pid) {
  clockid_t clock{};
  timespec used{};
  EXPECT_EQ(clock_getcpuclockid(static_cast<pid_t>(pid), &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &used), 0);
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

bool IsLimited(const BudgetKeeper& keeper) {
  const std::vector<NodeProblem> shortages = keeper.Shortages();
  return std::ranges::find(shortages, reasons::kCPUBudgetReached, &NodeProblem::reason) !=
         shortages.end();
}

bool Eventually(const std::function<bool()>& condition) {
  return WaitUntil(condition, std::chrono::minutes(2));
}

TEST(BudgetKeeper, FrequencyFallsAndRisesAndTheTotalsStayThoseOfTheLoad) {
  const testing::Burner burner({"split"});
  Metrics metrics;
  Totals totals;
  auto pipeline = CpuPipeline::Create({.scope = CpuPipelineOptions::Scope::kHost,
                                       .pids = {burner.pid()},
                                       .frequency_hz = kFrequency,
                                       .window = milliseconds(500)},
                                      &metrics, totals.Sink());
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  int64_t used = -CpuNanosOf(burner.pid());
  BudgetKeeper keeper(pipeline->get(), &metrics, milliseconds(500));
  keeper.SetLimits({.frequency_hz = kFrequency, .millicores = 10});
  {
    // This process is the agent, and it is busy.
    const std::jthread busy = StartThread("busy", [](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
    ASSERT_TRUE(Eventually([&] { return totals.periods().size() >= 3; }));
    EXPECT_TRUE(IsLimited(keeper));
  }
  keeper.SetLimits({.frequency_hz = kFrequency, .millicores = 1'000'000});
  ASSERT_TRUE(Eventually([&] { return !IsLimited(keeper); }));
  // Until the load has run that long at the frequency that is wanted.
  const int64_t at_full = CpuNanosOf(burner.pid());
  ASSERT_TRUE(Eventually([&] { return CpuNanosOf(burner.pid()) - at_full > 1'000'000'000; }));
  used += CpuNanosOf(burner.pid());
  (*pipeline)->Stop();
  EXPECT_NEAR(static_cast<double>(totals.nanos()) / static_cast<double>(used), 1, 0.3);
  EXPECT_GT((*pipeline)->ReadOtherCpu().bpf_ns, 0);
}

}  // namespace
}  // namespace flamefleet::agent
