// SPDX-License-Identifier: Apache-2.0
// A program with a known profile: burner MODE [SECONDS]
//   split   7 ms of CPU time in BurnSeventy, then 3 ms in BurnThirty, and again
//   kernel  all of it inside system calls made by BurnInKernel
//   once    BurnOnce for SECONDS of CPU time (default 1), then the end
//   deep    BurnOnce below 400 calls of Recurse
//   threads BurnSeventy in the thread "left", BurnThirty in "right", both all the time
//   idle    waits for input without using CPU time until "go", then as split
// Everything but `once` ends at the end of its standard input.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

namespace {

volatile uint64_t sink;

int64_t CpuNanos() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

// Rounds of Spin in a millisecond, measured once: reading the clock inside would show.
int64_t rounds_per_ms = 0;

// libc's functions have no frame pointer, which would hide who called them.
inline void Read(int fd, char* buffer, size_t size) {
#if defined(__aarch64__)
  register int64_t number asm("x8") = SYS_read;
  register int64_t first asm("x0") = fd;
  register char* second asm("x1") = buffer;
  register size_t third asm("x2") = size;
  asm volatile("svc #0" : "+r"(first) : "r"(number), "r"(second), "r"(third) : "memory");
#else
  int64_t result = SYS_read;
  asm volatile("syscall" : "+a"(result) : "D"(fd), "S"(buffer), "d"(size) : "rcx", "r11", "memory");
#endif
}

bool InputEnded() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN};
  char c = 0;
  return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) == 0;
}

}  // namespace

// g++ gives functions that call nothing no frame, whatever the options: asking for its address
// does.
#define BURN_BODY(rounds)                               \
  asm volatile("" : : "r"(__builtin_frame_address(0))); \
  for (int64_t i = 0; i < (rounds); ++i) {              \
    for (uint64_t k = 0; k < 100; ++k)                  \
      sink = sink + k;                                  \
  }

extern "C" {
__attribute__((noinline)) void BurnSeventy(int64_t rounds) {
  BURN_BODY(rounds)
}
__attribute__((noinline)) void BurnThirty(int64_t rounds) {
  BURN_BODY(rounds)
}
__attribute__((noinline)) void BurnOnce(int64_t rounds) {
  BURN_BODY(rounds)
}
__attribute__((noinline)) void Recurse(int depth, int64_t rounds) {
  if (depth == 1)
    BurnOnce(rounds);
  else
    Recurse(depth - 1, rounds);
  sink = sink + 1;  // no tail call, no loop
}
__attribute__((noinline)) void BurnInKernel(int fd, char* buffer, size_t size) {
  while (!InputEnded()) {
    for (int i = 0; i < 100; ++i)
      Read(fd, buffer, size);
  }
}
}

namespace demo {
template <typename T>
struct Work {
  __attribute__((noinline)) static void Run(T rounds) {
    BurnSeventy(rounds * 7);
    BurnThirty(rounds * 3);
    sink = sink + 1;  // no tail call: this frame must be on the stack
  }
};
}  // namespace demo

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const int64_t start = CpuNanos();
  constexpr int64_t kProbe = 100'000;
  BurnOnce(kProbe);
  rounds_per_ms = kProbe * 1'000'000 / (CpuNanos() - start) + 1;
  if (mode == "idle") {
    char go[2];
    if (read(STDIN_FILENO, go, sizeof(go)) != 2) return 0;
  }
  if (mode == "split" || mode == "idle") {
    while (!InputEnded())
      demo::Work<int64_t>::Run(rounds_per_ms);
    return 0;
  }
  if (mode == "threads") {
    const auto run = [](const char* name, void (*burn)(int64_t)) {
      pthread_setname_np(pthread_self(), name);
      while (!InputEnded())
        burn(rounds_per_ms);
    };
    std::thread left(run, "left", BurnSeventy);
    std::thread right(run, "right", BurnThirty);
    left.join();
    right.join();
    return 0;
  }
  if (mode == "deep") {
    while (!InputEnded())
      Recurse(400, rounds_per_ms);
    return 0;
  }
  if (mode == "once") {
    const int64_t seconds = argc > 2 ? std::atoi(argv[2]) : 1;
    BurnOnce(rounds_per_ms * 1000 * seconds);
    return 0;
  }
  if (mode == "kernel") {
    static char buffer[1 << 16];
    const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    BurnInKernel(zero, buffer, sizeof(buffer));
    return 0;
  }
  std::fprintf(stderr, "usage: burner split|kernel|deep|once|threads|idle [seconds]\n");
  return 2;
}
