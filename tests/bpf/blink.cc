// SPDX-License-Identifier: Apache-2.0
// A program that works for a millisecond: what churn starts again and again.
#include <ctime>

int main() {
  constexpr long kNanos = 1'000'000;
  timespec now{};
  do {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while (now.tv_sec == 0 && now.tv_nsec < kNanos);
  return 0;
}
