// SPDX-License-Identifier: Apache-2.0
// Counts every operator new of the program.
#include <gtest/gtest.h>

#include "base/pprof/profile.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/support/allocations.h"

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
  const size_t before = Allocations();
  for (uint32_t seed = 0; seed < 20; ++seed)
    round(seed);
  EXPECT_EQ(Allocations() - before, 0U);
  EXPECT_GT(out.size(), 1000U);
}

}  // namespace
}  // namespace flamefleet::pprof
