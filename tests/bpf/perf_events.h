// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace flamefleet::testing {

// Stops the perf events that this process has open, behind their owner's back; how many there are.
size_t StopPerfEvents();

}  // namespace flamefleet::testing
