// SPDX-License-Identifier: Apache-2.0
// Levels: values that say how much there is (memory in use, goroutines), not how much was spent.
// Their sum over time means nothing; what a person asks for is the mean.
//
// A profile's value holds until the next profile of its series, or for as long as profiles of that
// series lie apart, when no other follows.
//
// Thread: one. Bounds: of a Level, kMaxTimelinePoints steps and a little per series.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.h"
#include "store/db/database.h"
#include "store/match/selector.h"
#include "store/match/time_range.h"
#include "store/query/query.h"

namespace flamefleet::store {

// A profile that nothing is known about holds for this long: agents and SDKs send one each 15 s.
constexpr int64_t kUsualGapNs = int64_t{15} * 1'000'000'000;
// Profiles before the range that still hold in it are looked for so far back.
constexpr int64_t kLookBackNs = int64_t{300} * 1'000'000'000;

bool IsLevel(const SampleType& type);

// The sum over all series, as means of the steps of a range.
class Level {
 public:
  Level(const TimeRange& range, int64_t step_ns);

  // Profiles of one series come in the order of their times.
  void Add(const ProfileTotal& profile);
  // No more come.
  void Finish();

  std::vector<int64_t> Points() const;
  // While there was any; 0: there was none.
  double Mean() const;

 private:
  struct Series {
    int64_t time_ns = 0;
    int64_t gap_ns = 0;  // between its profiles, as far as is known
    int64_t value = 0;
    size_t step = 0;         // the last in which it was
    int64_t covered_ns = 0;  // of that step
  };
  void Hold(Series& series, int64_t end_ns);
  int64_t LengthOf(size_t step) const;

  const TimeRange range_;
  const int64_t step_ns_;
  std::map<Labels, Series> series_;
  std::vector<double> sums_;         // value times nanoseconds
  std::vector<int64_t> covered_ns_;  // of a step, by the series that covers most of it
};

// Scales the columns of `merged`, the merge of what `selector` and `range` mean, that are levels:
// their sum becomes the mean.
Status MeanLevels(Database* database, const Selector& selector, const TimeRange& range,
                  MergedProfile* merged);

}  // namespace flamefleet::store
