// SPDX-License-Identifier: Apache-2.0
// LabelSets: the label sets of an answer, each once, sorted.
//
// Thread: one owner. Bounds: kMaxLabelSetsBytes. Errors: Add: kResourceExhausted, and how to narrow
// the query.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"
#include "store/match/labels.h"

namespace flamefleet::store {

// In memory: some 30,000 sets of ten labels. The answer takes as much again.
constexpr size_t kMaxLabelSetsBytes = 32 << 20;

class LabelSets {
 public:
  Status Add(Labels labels) {
    const size_t bytes = BytesHeld(labels);
    if (sets_.insert(std::move(labels)).second) bytes_ += bytes;
    if (bytes_ <= kMaxLabelSetsBytes) return OkStatus();
    return ResourceExhaustedError("more than " + std::to_string(sets_.size() - 1) +
                                  " series match; choose a shorter time range or fewer of them");
  }

  const std::set<Labels>& sets() const { return sets_; }

 private:
  static size_t BytesHeld(const Labels& labels) {
    constexpr size_t kNodeBytes = 96;  // of a tree, with what its texts are beside their bytes
    size_t bytes = kNodeBytes;
    for (const auto& [name, value] : labels)
      bytes += kNodeBytes + name.size() + value.size();
    return bytes;
  }

  std::set<Labels> sets_;
  size_t bytes_ = 0;
};

}  // namespace flamefleet::store
