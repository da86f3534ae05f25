// SPDX-License-Identifier: Apache-2.0
// Merger: the sum of many profiles of the same sample types, as google/pprof merges them.
//
// Samples with equal stacks and labels become one, their values summed; samples that sum to zero
// vanish. A stack is equal by function (name, system name, file, start line), line, column and, per
// location, by mapping (build ID, else file; size and offset) and the address in it: one binary
// loaded at two addresses is one. Time is the earliest that is not 0, duration the sum, period the
// largest; comments are united; the first default sample type and documentation URL stay.
//
// Thread: none of its own; one owner. Bounds: what it holds, checked after each Add.
// Source: https://github.com/google/pprof/blob/main/profile/merge.go
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/pprof/profile.h"
#include "base/status.h"

namespace flamefleet::pprof {

class Merger {
 public:
  explicit Merger(size_t max_bytes);
  ~Merger();
  Merger(const Merger&) = delete;
  Merger& operator=(const Merger&) = delete;

  // `profile` must be valid (see Profile). kFailedPrecondition, and nothing is added, when its
  // sample types or period type differ from those of the first; kResourceExhausted when the sum has
  // grown over max_bytes, less what the caller holds besides it: the merge is lost then.
  Status Add(const Profile& profile, size_t held_bytes = 0);

  size_t profiles() const;

  // The sum; empty when nothing was added. The Merger is empty afterwards.
  Profile Take();

 private:
  class Impl;
  const size_t max_bytes_;
  std::unique_ptr<Impl> impl_;
};

// Removes every sample type but number `index`, and the samples whose value of it is 0.
void KeepSampleType(size_t index, Profile* profile);

// "samples/count,cpu/nanoseconds": the sample types as people and messages name them.
std::string SampleTypeNames(const Profile& profile);

}  // namespace flamefleet::pprof
