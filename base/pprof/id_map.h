// SPDX-License-Identifier: Apache-2.0
// IdMap: from the ids of a profile on the wire to indexes. Private to base/pprof.
//
// Nearly always the ids are 1, 2, 3... and the map is one subtraction; others are sorted and
// searched. Thread: none of its own; one owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace flamefleet::pprof {

class IdMap {
 public:
  static constexpr size_t kBytesEach = sizeof(std::pair<uint64_t, uint32_t>);

  void Add(uint64_t id) {
    sequential_ = sequential_ && id == ids_.size() + 1;
    ids_.push_back({id, static_cast<uint32_t>(ids_.size())});
  }

  // Call once, after the last Add.
  Status Seal(const std::string& what) {
    if (sequential_) return OkStatus();
    std::sort(ids_.begin(), ids_.end());
    if (ids_.front().first == 0) return InvalidArgumentError("pprof: " + what + " with id 0");
    for (size_t i = 1; i < ids_.size(); ++i) {
      if (ids_[i].first == ids_[i - 1].first) {
        return InvalidArgumentError("pprof: two " + what + "s with id " +
                                    std::to_string(ids_[i].first));
      }
    }
    return OkStatus();
  }

  bool Find(uint64_t id, uint32_t* index) const {
    if (sequential_) {
      *index = static_cast<uint32_t>(id - 1);
      return id >= 1 && id <= ids_.size();
    }
    const auto it =
        std::lower_bound(ids_.begin(), ids_.end(), std::pair<uint64_t, uint32_t>{id, 0});
    if (it == ids_.end() || it->first != id) return false;
    *index = it->second;
    return true;
  }

 private:
  std::vector<std::pair<uint64_t, uint32_t>> ids_;
  bool sequential_ = true;
};

}  // namespace flamefleet::pprof
