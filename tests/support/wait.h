// SPDX-License-Identifier: Apache-2.0
// WaitUntil: for what happens on another thread or in another process. Thread: any.
#pragma once

#include <chrono>
#include <thread>

namespace flamefleet {

// False when `condition` did not become true in time: long enough for a loaded machine.
template <typename Condition>
bool WaitUntil(const Condition& condition,
               std::chrono::seconds deadline = std::chrono::seconds(30)) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace flamefleet
