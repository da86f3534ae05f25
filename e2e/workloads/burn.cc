// SPDX-License-Identifier: Apache-2.0
//
// A workload whose profile is known: BurnSeventy and BurnThirty use 70 % and 30 % of its CPU time.
//   burn [PERCENT]    how much of one CPU it uses, 1..100; default 20
// The shares are kept in CPU time, not in iterations, so neither the machine's speed nor its load
// changes them.

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int kDefaultPercent = 20;
// Rounds differ in length, so that no sampling frequency can fall into step with them.
constexpr int64_t kShortestRoundMillis = 10;
constexpr int64_t kRoundSpreadMillis = 17;
constexpr int kIterationsPerClockRead =
    20'000;  // some 10 us: reading the clock stays below 2 % of the work

volatile uint64_t sink;

int64_t CpuNanos() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

// The two functions are alike on purpose and must stay two: extern "C" keeps their names, the seed
// keeps the compiler from merging them.
#define DEFINE_BURNER(name, seed)                                           \
  extern "C" __attribute__((noinline, noclone)) int64_t name(int64_t end) { \
    uint64_t value = seed;                                                  \
    int64_t now = CpuNanos();                                               \
    while (now < end) {                                                     \
      for (int i = 0; i < kIterationsPerClockRead; ++i) {                   \
        value = value * 6364136223846793005u + seed;                        \
      }                                                                     \
      sink = value;                                                         \
      now = CpuNanos();                                                     \
    }                                                                       \
    return now;                                                             \
  }

DEFINE_BURNER(burn_seventy, 70'000'001)
DEFINE_BURNER(burn_thirty, 30'000'003)

int main(int argc, char** argv) {
  const int percent = argc > 1 ? std::atoi(argv[1]) : kDefaultPercent;
  if (percent < 1 || percent > 100) {
    std::fprintf(stderr, "burn: PERCENT must be 1..100, not %s\n", argv[1]);
    return 2;
  }
  // Each function's end is counted from the very start: what one round overshoots, a later one has
  // less.
  int64_t seventy_used = 0;
  int64_t thirty_used = 0;
  int64_t total = 0;
  for (int64_t round = 0;; ++round) {
    const int64_t length = (kShortestRoundMillis + round * 7 % kRoundSpreadMillis) * kNanosPerMilli;
    total += length;
    int64_t start = CpuNanos();
    int64_t now = burn_seventy(start + total * 7 / 10 - seventy_used);
    seventy_used += now - start;
    start = now;
    now = burn_thirty(start + total * 3 / 10 - thirty_used);
    thirty_used += now - start;
    const int64_t pause = length * (100 - percent) / percent;
    const timespec sleep{pause / 1'000'000'000, pause % 1'000'000'000};
    nanosleep(&sleep, nullptr);
  }
}
