// SPDX-License-Identifier: Apache-2.0
// churn COUNT RATE PROGRAM: starts COUNT processes of PROGRAM, RATE a second, evenly, and waits for
// each of them.
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using std::chrono::steady_clock;

constexpr uint64_t kMaxRunning = 200;  // a machine that is too slow gets no more at once

void Reap(uint64_t* running, int options) {
  while (*running > 0 && waitpid(-1, nullptr, options) > 0)
    --*running;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: churn COUNT RATE PROGRAM\n");
    return 2;
  }
  const std::chrono::duration<double> interval(1 / std::atof(argv[2]));
  const auto begin = steady_clock::now();
  const uint64_t count = std::strtoull(argv[1], nullptr, 10);
  uint64_t started = 0;
  uint64_t running = 0;
  char* const arguments[] = {argv[3], nullptr};
  while (started < count) {
    const auto now = steady_clock::now();
    while (started < count && running < kMaxRunning &&
           begin + static_cast<double>(started) * interval <= now) {
      if (posix_spawn(nullptr, argv[3], nullptr, nullptr, arguments, environ) != 0) {
        std::perror("churn: start a process");
        return 1;
      }
      ++started;
      ++running;
      Reap(&running, WNOHANG);
    }
    Reap(&running, WNOHANG);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Reap(&running, 0);
  return 0;
}
