// SPDX-License-Identifier: Apache-2.0
// A program without frame pointers whose stack is known while it burns CPU time: deep MODE
//   chain          main -> Chain<15>::Run -> DeepHop -> Chain<14>::Run ... -> Chain<0>::Run -> Burn
//   thread         the same in a thread
//   signal         the same in a signal handler, which interrupts Interrupted
//   exec PROGRAM   the same for a second, then PROGRAM chain in its place
// Ends at the end of its standard input.
#include "tests/bpf/deep.h"

#include <alloca.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <thread>

namespace {
volatile int64_t sink;
}  // namespace

extern "C" __attribute__((noinline)) void Burn(int64_t rounds) {
  for (int64_t i = 0; i < rounds; ++i)
    sink = sink + i;
}

// Frames of every kind that compilers make: plain ones, one with a frame pointer because its size
// varies, one that realigns the stack.
template <int N>
struct Chain {
  __attribute__((noinline)) static void Run(int64_t rounds) {
    if constexpr (N % 5 == 1) {
      auto* const space = static_cast<volatile char*>(alloca(static_cast<size_t>(rounds % 7 + N)));
      space[0] = 1;
      Next(rounds + space[0]);
    } else if constexpr (N % 5 == 2) {
      alignas(64) volatile char space[N];
      space[0] = 1;
      Next(rounds + space[0]);
    } else {
      Next(rounds);
    }
    sink = sink + 1;  // no tail call
  }

  __attribute__((always_inline)) static void Next(int64_t rounds) {
    if constexpr (N == 0)
      Burn(rounds);
    else
      DeepHop(&Chain<N - 1>::Run, rounds);
  }
};

namespace {

bool InputEnded() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN};
  char c = 0;
  return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) == 0;
}

constexpr int64_t kRounds = 20'000'000;  // some 10 ms

void OnSignal(int) {
  Chain<15>::Run(kRounds);
}

}  // namespace

extern "C" __attribute__((noinline)) void Interrupted() {
  raise(SIGUSR1);
  sink = sink + 1;
}

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "chain") {
    while (!InputEnded())
      Chain<15>::Run(kRounds);
  } else if (mode == "thread") {
    std::thread([] {
      while (!InputEnded())
        Chain<15>::Run(kRounds);
    }).join();
  } else if (mode == "signal") {
    signal(SIGUSR1, OnSignal);
    while (!InputEnded())
      Interrupted();
  } else if (mode == "exec" && argc > 2) {
    while (clock() < CLOCKS_PER_SEC)
      Chain<15>::Run(kRounds);
    execl(argv[2], argv[2], "chain", nullptr);
    return 1;
  } else {
    std::fprintf(stderr, "usage: deep chain|thread|signal|exec PROGRAM\n");
    return 2;
  }
  return 0;
}
