// SPDX-License-Identifier: Apache-2.0
// A program without frame pointers whose stack is known while it burns CPU time: deep MODE
//   chain          main -> Chain<15>::Run -> DeepHop -> Chain<14>::Run ... -> Chain<0>::Run -> Burn
//   thread         the same in a thread
//   trampoline     the same, Chain<15>::Run called by code as CPython makes it with -X perf
//   mappings       the same among 5,000 other executable mappings
//   signal         the same in a signal handler, which interrupts Interrupted
//   trap           the same in a signal handler that the first instruction of Trap leads to
//   exec PROGRAM   the same for a second, then PROGRAM chain in its place
// Ends at the end of its standard input.
#include "tests/bpf/deep.h"

#include <alloca.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
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

// Below the libraries; each between two that are not executable.
bool MapManyTimes() {
  constexpr size_t kMappings = 5000;
  constexpr size_t kPage = 4096;
  void* const all =
      mmap(nullptr, 2 * kMappings * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return false;
  for (size_t i = 0; i < kMappings; ++i) {
    char* const page = static_cast<char*>(all) + 2 * i * kPage;
    if (mprotect(page, kPage, PROT_READ | PROT_EXEC) != 0) return false;
  }
  return true;
}

// sub $8, %rsp; call *%rcx; add $8, %rsp; ret
constexpr unsigned char kTrampoline[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd1,
                                         0x48, 0x83, 0xc4, 8, 0xc3};
using Trampoline = void (*)(int64_t rounds, int64_t, int64_t, void (*called)(int64_t));

Trampoline MakeTrampoline() {
  void* const code = mmap(nullptr, sizeof(kTrampoline), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return nullptr;
  std::memcpy(code, kTrampoline, sizeof(kTrampoline));
  if (mprotect(code, sizeof(kTrampoline), PROT_READ | PROT_EXEC) != 0) return nullptr;
  return reinterpret_cast<Trampoline>(code);
}

void OnSignal(int) {
  Chain<15>::Run(kRounds);
}

}  // namespace

// An instruction that is none.
#if defined(__x86_64__)
#define TRAP "ud2"
#define TRAP_BYTES 2
#define TRAP_REGISTER gregs[REG_RIP]
#elif defined(__aarch64__)
#define TRAP "udf #0"
#define TRAP_BYTES 4
#define TRAP_REGISTER pc
#endif
asm(".text\n"
    ".globl BeforeTrap, Trap\n"
    ".type BeforeTrap, @function\n"
    ".type Trap, @function\n"
    "BeforeTrap: .cfi_startproc\n ret\n .cfi_endproc\n .size BeforeTrap, . - BeforeTrap\n"
    "Trap: .cfi_startproc\n " TRAP "\n ret\n .cfi_endproc\n .size Trap, . - Trap\n");
extern "C" void Trap();

namespace {

void OnTrap(int, siginfo_t*, void* context) {
  Chain<15>::Run(kRounds);
  static_cast<ucontext_t*>(context)->uc_mcontext.TRAP_REGISTER += TRAP_BYTES;
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
  } else if (mode == "trampoline") {
    const Trampoline trampoline = MakeTrampoline();
    if (trampoline == nullptr) return 1;
    while (!InputEnded())
      trampoline(kRounds, 0, 0, &Chain<15>::Run);
  } else if (mode == "mappings") {
    if (!MapManyTimes()) return 1;
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
  } else if (mode == "trap") {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = OnTrap;
    sigaction(SIGILL, &action, nullptr);
    while (!InputEnded())
      Trap();
  } else if (mode == "exec" && argc > 2) {
    while (clock() < CLOCKS_PER_SEC)
      Chain<15>::Run(kRounds);
    execl(argv[2], argv[2], "chain", nullptr);
    return 1;
  } else {
    std::fprintf(stderr, "usage: deep chain|trampoline|mappings|thread|signal|trap|exec PROGRAM\n");
    return 2;
  }
  return 0;
}
