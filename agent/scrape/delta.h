// SPDX-License-Identifier: Apache-2.0
// Delta: turns the sample types that a Go program counts from its start (alloc_*, contentions,
// delay) into what happened since the last profile of the same target. Backends add up what they
// get, so a cumulative value sent raw is counted again and again.
//
// The first profile, and the first after the program was restarted, has no past: its cumulative
// values become 0. A restart is seen by a value that went down or a stack that vanished. Other
// sample types (inuse_*, goroutine, cpu) stay as they are.
//
// Thread: none of its own; one owner, one target; a DeltaRoom has many.
// Bounds: 16 + 8 * (cumulative types) bytes per stack of the last profile, of what the room has.
// Errors: Apply: kResourceExhausted, the room is used up; what was known stays.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/pprof/profile.h"
#include "base/status.h"

namespace flamefleet::agent {

// Memory for what all targets of an agent keep. Outlives them.
class DeltaRoom {
 public:
  explicit DeltaRoom(size_t bytes) : left_(static_cast<int64_t>(bytes)) {}

  // Less than 0 gives back, which always works.
  bool Take(int64_t bytes) {
    if ((left_ -= bytes) >= 0 || bytes <= 0) return true;
    left_ += bytes;
    return false;
  }

 private:
  std::atomic<int64_t> left_;
};

class Delta {
 public:
  // `room` null: as much as it needs.
  explicit Delta(DeltaRoom* room = nullptr) : room_(room) {}
  ~Delta() {
    if (room_ != nullptr) room_->Take(-past_.Bytes());
  }
  Delta(const Delta&) = delete;
  Delta& operator=(const Delta&) = delete;

  // Rewrites the values of `profile`, which must be valid.
  Status Apply(pprof::Profile* profile);

 private:
  // Two hashes of a stack, seeded apart: equal keys are equal stacks.
  using StackKey = std::pair<uint64_t, uint64_t>;
  struct Totals {
    std::vector<StackKey> stacks;  // in order, each once
    std::vector<int64_t> values;   // per stack one of each cumulative sample type
    int64_t Bytes() const {
      return static_cast<int64_t>(stacks.size() * sizeof(StackKey) +
                                  values.size() * sizeof(int64_t));
    }
  };

  std::vector<StackKey> KeysOf(const pprof::Profile& profile) const;
  bool HasRestarted(const Totals& now) const;

  const uint64_t first_seed_ = RandomHashSeed();
  const uint64_t second_seed_ = RandomHashSeed();
  DeltaRoom* const room_;
  bool has_past_ = false;
  Totals past_;
};

// Whether a sample type of this name is counted from the start of the program.
bool IsCumulative(std::string_view sample_type);

}  // namespace flamefleet::agent
