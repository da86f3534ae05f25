// SPDX-License-Identifier: Apache-2.0
#include "tests/fidelity/stacks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/pprof/profile.h"

namespace flamefleet::testing {

std::vector<Stack> StacksOf(const agent::FinishedProfile& finished) {
  pprof::Profile profile;
  const Status status = pprof::Decode(finished.pprof, {}, &profile);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<Stack> stacks;
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const pprof::Sample& sample = profile.samples[i];
    Stack stack{.count = static_cast<uint64_t>(profile.values[i] / profile.period)};
    for (uint32_t k = 0; k < sample.location_count; ++k) {
      const pprof::Location& location =
          profile.locations[profile.sample_locations[sample.first_location + k]];
      for (uint32_t line = 0; line < location.line_count; ++line) {
        stack.names.emplace_back(profile.strings.Get(
            profile.functions[profile.lines[location.first_line + line].function].name));
      }
    }
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

uint64_t WantedSamples(uint64_t least) {
  const char* const text = std::getenv("FF_FIDELITY_SAMPLES");
  return text == nullptr ? least : std::max<uint64_t>(least, std::strtoull(text, nullptr, 10));
}

}  // namespace flamefleet::testing
