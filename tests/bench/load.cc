// SPDX-License-Identifier: Apache-2.0
// A busy program without frame pointers: load COUNTER [BYTES]
//
// Its stack is 35 deep from _start to Work while it burns CPU time. Each call of Work adds one to
// the u64 at the start of the file COUNTER, so that another process can see how fast it is. BYTES
// (default 32 KiB, the size of a first-level cache) is how much memory Work walks over. Ends at the
// end of its standard input.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

std::vector<uint64_t> memory;
size_t at = 0;
std::atomic<uint64_t>* counter = nullptr;
volatile uint64_t sink;

bool InputEnded() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN};
  char c = 0;
  return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) == 0;
}

}  // namespace

// Some 20 us.
extern "C" __attribute__((noinline)) void Work() {
  uint64_t sum = sink;
  for (int i = 0; i < 4096; ++i) {
    sum = sum * 31 + memory[at];
    at = (at + 1021) % memory.size();  // a stride that no prefetcher follows
  }
  sink = sum;
  counter->store(counter->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// 30 levels between main and Work. Every third keeps more than the return address on its stack.
template <int N>
struct Level {
  __attribute__((noinline)) static void Run() {
    volatile uint64_t space[N % 3 + 1];
    space[0] = N;
    if constexpr (N == 1) {
      for (int i = 0; i < 500; ++i)
        Work();
    } else {
      Level<N - 1>::Run();
    }
    sink = sink + space[0];  // no tail call
  }
};

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: load COUNTER [BYTES]\n");
    return 2;
  }
  const int fd = open(argv[1], O_RDWR | O_CLOEXEC);
  void* const shared = mmap(nullptr, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || shared == MAP_FAILED) {
    std::perror("load: map the counter");
    return 1;
  }
  counter = static_cast<std::atomic<uint64_t>*>(shared);
  memory.resize((argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 32 << 10) / sizeof(uint64_t), 1);
  while (!InputEnded())
    Level<30>::Run();
  return 0;
}
