// SPDX-License-Identifier: Apache-2.0
#include "agent/health/cpu_budget.h"

#include <algorithm>

namespace flamefleet::agent {
namespace {

// In one period.
constexpr double kMaxCut = 0.5;
constexpr double kMaxRaise = 2;

}  // namespace

void CpuBudget::SetLimits(const CpuLimits& limits) {
  if (limits.millicores == 0 || !is_limited()) {
    effort_ = {.frequency_hz = limits.frequency_hz};
  } else {
    effort_.frequency_hz = std::min(effort_.frequency_hz, limits.frequency_hz);
  }
  limits_ = limits;
  periods_ = 0;
}

void CpuBudget::Observe(double millicores) {
  if (limits_.millicores == 0) return;
  ++periods_;
  mean_ += (millicores - mean_) / std::min(periods_, kMeanPeriods);
  const auto budget = static_cast<double>(limits_.millicores);
  const int calm_periods = effort_.new_names ? kCalmPeriods : kCalmPeriodsForNames;
  const SamplingEffort before = effort_;
  if (mean_ > budget) {
    Lower();
  } else if (mean_ < kRoom * budget && is_limited() && periods_ >= calm_periods) {
    Raise();
  }
  if (effort_ != before) periods_ = 0;
}

// Part of what is used does not depend on the frequency, so the next period uses at least what is
// aimed at: it comes near from above, and in Raise from below.
void CpuBudget::Lower() {
  const uint32_t least = std::min(kLeastFrequencyHz, limits_.frequency_hz);
  if (effort_.frequency_hz <= least) {
    effort_.new_names = false;
    return;
  }
  const double factor = std::max(kMaxCut, kAim * static_cast<double>(limits_.millicores) / mean_);
  const auto lower = static_cast<uint32_t>(static_cast<double>(effort_.frequency_hz) * factor);
  effort_.frequency_hz = std::max(least, lower);
}

void CpuBudget::Raise() {
  if (!effort_.new_names) {
    effort_.new_names = true;
    return;
  }
  const double aim = kAim * static_cast<double>(limits_.millicores);
  const double factor = mean_ * kMaxRaise > aim ? aim / mean_ : kMaxRaise;
  const auto higher = static_cast<uint32_t>(static_cast<double>(effort_.frequency_hz) * factor);
  effort_.frequency_hz = std::min(limits_.frequency_hz, std::max(effort_.frequency_hz + 1, higher));
}

std::string CpuBudget::Describe() const {
  if (!is_limited()) return "";
  std::string text = "to use at most " + std::to_string(limits_.millicores) +
                     "m of CPU (budget.cpu) the agent samples at " +
                     std::to_string(effort_.frequency_hz) + " Hz instead of " +
                     std::to_string(limits_.frequency_hz);
  if (!effort_.new_names) text += " and reads no further files for names";
  return text;
}

}  // namespace flamefleet::agent
