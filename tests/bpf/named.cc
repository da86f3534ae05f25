// SPDX-License-Identifier: Apache-2.0
// A program that burns CPU time in a function named after its number: named NUMBER MILLISECONDS
// calls Named<NUMBER>::Burn, of 0 to 63, until it has used that much.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace {

constexpr int kNumbers = 64;
volatile uint64_t sink;

int64_t CpuNanos() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

template <int N>
struct Named {
  // Each with a number of its own, else they would be one function.
  __attribute__((noipa)) static void Burn() {
    for (uint64_t i = 0; i < 500'000; ++i)
      sink = sink + i + N;
  }
};

template <int... kN>
constexpr std::array<void (*)(), kNumbers> All(std::integer_sequence<int, kN...>) {
  return {&Named<kN>::Burn...};
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const auto burners = All(std::make_integer_sequence<int, kNumbers>());
  void (*const burn)() = burners.at(static_cast<size_t>(std::atoi(arguments[1])));
  while (CpuNanos() < std::atoll(arguments[2]) * 1'000'000)
    burn();
  return 0;
}
