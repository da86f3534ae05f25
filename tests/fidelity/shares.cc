// SPDX-License-Identifier: Apache-2.0
// A program whose profile is known: of each 10 rounds of the same work, 7 are in Seventy and 3 in
// Thirty. It counts rounds and reads no clock: however slow the machine is at a time, both are. How
// many rounds there are at a time is random, so that no two samples are at distances which fit to
// it. shares MODE
//   plain          main -> Outer -> Hop -> Middle -> Seventy | Thirty -> Spin
//   signal         ... from a signal handler that interrupts Interrupted
//   deep           ... below 60 calls of Recurse
//   late LIBRARY   ... from LateCall of a library that is loaded when the program has run for a
//                  while in OtherProgram
//   exec PROGRAM   OtherProgram for a while, then PROGRAM plain in its place
// Ends at the end of its standard input.
#include "tests/fidelity/shares.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace {

volatile uint64_t sink;

bool InputEnded() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN};
  char c = 0;
  return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) == 0;
}

constexpr uint64_t kStretches = 100;      // of each of the two in a call of Middle
constexpr uint64_t kMaxUnits = 8;         // of work in a stretch; a unit is some 10 us
constexpr uint64_t kOtherUnits = 50'000;  // some half a second

// Knuth's MMIX generator; its upper bits are random enough.
uint64_t Random(uint64_t end) {
  static uint64_t state = 1;
  state = state * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
  return (state >> 33) % end;
}

}  // namespace

// No call may be the last thing that a function does: its frame must be on the stack.
#define AFTER_CALL sink = sink + 1
#define KNOWN extern "C" __attribute__((noipa)) void

KNOWN Spin() {
  for (uint64_t i = 0; i < 500; ++i)
    sink = sink + i;
}

KNOWN Seventy(uint64_t units) {
  for (uint64_t i = 0; i < 7 * units; ++i)
    Spin();
  AFTER_CALL;
}

KNOWN Thirty(uint64_t units) {
  for (uint64_t i = 0; i < 3 * units; ++i)
    Spin();
  AFTER_CALL;
}

KNOWN OtherProgram() {
  for (uint64_t i = 0; i < 10 * kOtherUnits; ++i)
    Spin();
  AFTER_CALL;
}

KNOWN Middle() {
  for (uint64_t i = 0; i < kStretches; ++i) {
    const uint64_t units = 1 + Random(kMaxUnits);
    Seventy(units);
    Thirty(units);
  }
  AFTER_CALL;
}

// The alignment makes the function keep its stack pointer in a register: another kind of frame.
KNOWN Outer() {
  alignas(64) volatile char space[64];
  space[0] = 1;
  Hop(Middle);
  sink = sink + static_cast<uint64_t>(space[0]);
}

KNOWN Recurse(int depth) {
  if (depth == 0)
    Outer();
  else
    Recurse(depth - 1);
  AFTER_CALL;
}

namespace {
void OnSignal(int) {
  Outer();
  AFTER_CALL;
}
}  // namespace

KNOWN Interrupted() {
  raise(SIGUSR1);
  AFTER_CALL;
}

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "plain") {
    while (!InputEnded())
      Outer();
  } else if (mode == "signal") {
    signal(SIGUSR1, OnSignal);
    while (!InputEnded())
      Interrupted();
  } else if (mode == "deep") {
    while (!InputEnded())
      Recurse(59);
  } else if (mode == "late" && argc > 2) {
    OtherProgram();
#ifdef FF_WITH_DLOPEN
    void* const library = dlopen(argv[2], RTLD_NOW);
    auto* const late = library == nullptr
                           ? nullptr
                           : reinterpret_cast<void (*)(void (*)())>(dlsym(library, "LateCall"));
    if (late == nullptr) return 1;
    while (!InputEnded())
      late(Outer);
#endif
  } else if (mode == "exec" && argc > 2) {
    OtherProgram();
    execl(argv[2], argv[2], "plain", nullptr);
    return 1;
  } else {
    std::fprintf(stderr, "usage: shares plain|signal|deep|late LIBRARY|exec PROGRAM\n");
    return 2;
  }
  return 0;
}
