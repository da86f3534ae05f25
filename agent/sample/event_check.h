// SPDX-License-Identifier: Apache-2.0
// EventCheck: does each CPU's timer still reach the sampling program? One that is silent looks like
// a node on which nothing runs. It is opened again, soon at first, then ever more rarely.
//
// Where programs used a CPU, the sampler must have met them there: with the period p, every p of
// their CPU time. A CPU is judged each time its programs used what kJudgedEvents take.
//
// Thread: one owner. Units: nanoseconds of CPU time, by /proc/stat, whose steps are 10 ms. Bounds:
// one entry per CPU that is online. Errors: none; what is not listed is not judged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace flamefleet::agent {

// 10 s of one busy CPU at 19 Hz. Far more than what is off by the steps of /proc/stat.
constexpr uint64_t kJudgedEvents = 200;
// Less than a tenth of them is no matter of lost ticks or of slow accounting.
constexpr uint64_t kLeastShare = 10;
// A timer that stays silent is opened again after the 1st, 2nd, 4th ... judgement that says so, and
// after each of this many at the latest.
constexpr uint32_t kMaxSilencesBetweenReopenings = 64;

// Time that programs, not interrupts, used each CPU in user or kernel mode, by the text of
// /proc/stat.
std::map<int, uint64_t> BusyNanosByCpu(std::string_view stat);

class EventCheck {
 public:
  // `events` by CPU: enum ff_counter FF_COUNT_EVENTS. `period_ns` is that of the time since the
  // last call; another one begins anew. Returns the CPUs whose timers are to be opened again.
  std::vector<int> Update(const std::vector<uint64_t>& events,
                          const std::map<int, uint64_t>& busy_ns, uint64_t period_ns);

  // What is wrong and what to do; "" while nothing is known to be.
  std::string Problem() const;
  // No CPU is heard, and one that should be is not.
  bool IsSilent() const;

 private:
  struct Cpu {
    uint64_t events = 0;      // when its judgement began
    uint64_t busy_ns = 0;     // likewise
    bool has_spoken = false;  // gave any event since it was first seen
    uint32_t silences = 0;    // judgements in a row that found it silent
  };

  uint64_t period_ns_ = 0;
  std::map<int, Cpu> cpus_;
};

}  // namespace flamefleet::agent
