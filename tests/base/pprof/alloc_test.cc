// SPDX-License-Identifier: Apache-2.0
// Counts every operator new of the program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/pprof/profile.h"
#include "tests/base/pprof/test_profiles.h"

namespace {
std::atomic<size_t> allocations{0};
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  void* const memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace flamefleet::pprof {
namespace {

TEST(SteadyState, AReusedProfileAndItsEncodingAllocateNothing) {
  Profile profile;
  std::string out;
  const auto round = [&](uint32_t seed) {
    FillRandomProfile(seed, 1000, &profile);
    out.clear();
    Encode(profile, &out);
  };
  for (uint32_t seed = 0; seed < 20; ++seed)
    round(seed);
  const size_t before = allocations;
  for (uint32_t seed = 0; seed < 20; ++seed)
    round(seed);
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_GT(out.size(), 1000U);
}

}  // namespace
}  // namespace flamefleet::pprof
