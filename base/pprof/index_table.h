// SPDX-License-Identifier: Apache-2.0
// IndexTable: a hash set of indexes into a vector that lives elsewhere. Private to base/pprof.
//
// An entry costs 16 to 32 bytes whatever the size of what it names.
// Thread: none of its own; one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flamefleet::pprof {

class IndexTable {
 public:
  // The index of an equal element if there is one, else `candidate`, which is added. `equal(i)`
  // compares the candidate with element i.
  template <typename Equal>
  uint32_t FindOrAdd(size_t hash, uint32_t candidate, const Equal& equal) {
    if ((used_ + 1) * 2 > slots_.size()) Grow();
    const auto short_hash = static_cast<uint32_t>(hash);
    const size_t mask = slots_.size() - 1;
    size_t i = short_hash & mask;
    for (; slots_[i].entry != 0; i = (i + 1) & mask) {
      if (slots_[i].hash == short_hash && equal(slots_[i].entry - 1)) return slots_[i].entry - 1;
    }
    slots_[i] = {short_hash, candidate + 1};
    ++used_;
    return candidate;
  }

  size_t Bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t entry = 0;  // index + 1; 0 is free
  };

  void Grow() {
    std::vector<Slot> old(slots_.empty() ? kInitialSlots : slots_.size() * 2);
    old.swap(slots_);
    const size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.entry == 0) continue;
      size_t i = slot.hash & mask;
      while (slots_[i].entry != 0)
        i = (i + 1) & mask;
      slots_[i] = slot;
    }
  }

  static constexpr size_t kInitialSlots = 64;  // a power of two
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace flamefleet::pprof
