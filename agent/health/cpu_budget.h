// SPDX-License-Identifier: Apache-2.0
// CpuBudget: how often the agent samples, and whether it reads further files for their names, so
// that the CPU time it takes stays within a budget.
//
//   over the budget              fewer samples, in proportion, at most by half; where that has come
//                                to kLeastFrequencyHz: no further names
//   below kRoom of it, after     names again, then more samples, in proportion, at most twice as
//   kCalmPeriods                 many
//   between these                nothing, so that it does not swing
// What is judged is the mean of the last kMeanPeriods with the same effort: a single period is up
// to 5 % beside it. It aims at kAim of the budget, inside of the band in which nothing is done.
//
// Thread: one owner; pure. Units: thousandths of a CPU.
#pragma once

#include <cstdint>
#include <string>

namespace flamefleet::agent {

// What is wanted.
struct CpuLimits {
  uint32_t frequency_hz = 0;
  int64_t millicores = 0;  // 0: no budget

  friend bool operator==(const CpuLimits&, const CpuLimits&) = default;
};

// What is done.
struct SamplingEffort {
  uint32_t frequency_hz = 0;
  bool new_names = true;  // files that were not read yet are read for their names

  friend bool operator==(const SamplingEffort&, const SamplingEffort&) = default;
};

class CpuBudget {
 public:
  // With less a window of 10 s says nothing any more.
  static constexpr uint32_t kLeastFrequencyHz = 5;
  static constexpr double kRoom = 0.95;
  static constexpr double kAim = 0.98;
  static constexpr int kMeanPeriods = 6;
  static constexpr int kCalmPeriods = 2;
  // Names may have been what was too much: they come back after a longer time.
  static constexpr int kCalmPeriodsForNames = 6;

  // An effort that is held down stays so, as far as the limits have room for it.
  void SetLimits(const CpuLimits& limits);

  // What the agent took on average in a period in which effort() was in force.
  void Observe(double millicores);

  const SamplingEffort& effort() const { return effort_; }
  // Less is done than wanted.
  bool is_limited() const {
    return effort_.frequency_hz < limits_.frequency_hz || !effort_.new_names;
  }
  // What is done less, for people; empty: nothing.
  std::string Describe() const;

 private:
  void Lower();
  void Raise();

  CpuLimits limits_;
  SamplingEffort effort_;
  int periods_ = 0;  // with this effort
  double mean_ = 0;  // of the last of them
};

}  // namespace flamefleet::agent
