// SPDX-License-Identifier: Apache-2.0
// ScrapeLimits: what the profiles of pods may take in memory, by the limit of the agent: whatever
// they send costs no more than their own collection.
//
// Thread: any; pure. Units: bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace flamefleet::agent {

// The most, which an agent without a limit takes.
struct ScrapeLimits {
  // As sent, of each pull that is under way. A large Go program's profile is below 1 MiB.
  size_t body = 4 << 20;
  // After decompression, of the one that is decoded. Backends take 2 to 4 MiB.
  size_t raw = 16 << 20;
  size_t decoded = 64 << 20;
  // What is kept of the last profiles of all cumulative collections, to make deltas.
  size_t past = 64 << 20;
};

// With all of them used up at once by pods that mean harm, a third of the limit is left.
inline ScrapeLimits ScrapeLimitsFor(std::optional<uint64_t> memory_limit) {
  ScrapeLimits limits;
  if (!memory_limit) return limits;
  limits.body = std::min<size_t>(limits.body, *memory_limit / 128);  // at most 16 at once
  limits.raw = std::min<size_t>(limits.raw, *memory_limit / 16);
  limits.decoded = std::min<size_t>(limits.decoded, *memory_limit / 12);
  limits.past = std::min<size_t>(limits.past, *memory_limit / 16);
  return limits;
}

}  // namespace flamefleet::agent
