// SPDX-License-Identifier: Apache-2.0
// Delta: turns the sample types that a Go program counts from its start (alloc_*, contentions,
// delay) into what happened since the last profile of the same target. Backends add up what they
// get, so a cumulative value sent raw is counted again and again.
//
// The first profile, and the first after the program was restarted, has no past: its cumulative
// values become 0. A restart is seen by a value that went down or a stack that vanished. Other
// sample types (inuse_*, goroutine, cpu) stay as they are.
//
// Thread: none of its own; one owner, one target.
// Bounds: one entry of 16 + 8 * (cumulative types) bytes per stack of the last profile.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/pprof/profile.h"

namespace flamefleet::agent {

class Delta {
 public:
  // Rewrites the values of `profile`, which must be valid.
  void Apply(pprof::Profile* profile);

 private:
  // Two hashes of a stack, seeded apart: equal keys are equal stacks.
  using StackKey = std::pair<uint64_t, uint64_t>;
  struct StackKeyHash {
    size_t operator()(const StackKey& key) const { return key.first; }
  };
  using Values = std::vector<int64_t>;  // one per cumulative sample type
  using Totals = std::unordered_map<StackKey, Values, StackKeyHash>;

  std::vector<StackKey> KeysOf(const pprof::Profile& profile) const;
  bool WentDown(const Totals& now) const;

  const uint64_t first_seed_ = RandomHashSeed();
  const uint64_t second_seed_ = RandomHashSeed();
  bool has_past_ = false;
  Totals past_;
};

// Whether a sample type of this name is counted from the start of the program.
bool IsCumulative(std::string_view sample_type);

}  // namespace flamefleet::agent
