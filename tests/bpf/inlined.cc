// SPDX-License-Identifier: Apache-2.0
// A program that works in one function, of which no code of its own is left: it is inlined. The
// test looks for the lines that have a remark. Ends with its standard input.
#include <poll.h>
#include <unistd.h>

#include <cstdint>

namespace shop {

volatile uint64_t sink;

struct Basket {
  __attribute__((always_inline)) void Add(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)  // first hot line
      sum = sum * 3 + i;                  // last hot line
    sink = sum;
  }
  uint64_t sum = 1;
};

__attribute__((noinline)) uint64_t Price(uint64_t count) {
  Basket basket;
  basket.Add(count);  // call
  return basket.sum;
}

}  // namespace shop

int main() {
  for (;;) {
    for (int i = 0; i < 1000; ++i)
      shop::sink = shop::sink + shop::Price(10'000);
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN};
    char c = 0;
    if (poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &c, 1) == 0) return 0;
  }
}
