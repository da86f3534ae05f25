// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/types.h"

namespace flamefleet::testing {

struct Stack {
  std::vector<std::string> names;  // innermost first
  uint64_t count = 0;
};

std::vector<Stack> StacksOf(const agent::FinishedProfile& finished);

// Samples that tests of shares take: `least`, or what FF_FIDELITY_SAMPLES asks for beyond that.
uint64_t WantedSamples(uint64_t least);

}  // namespace flamefleet::testing
