// SPDX-License-Identifier: Apache-2.0
#include "store/query/level.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace flamefleet::store {
namespace {

// Of net/http/pprof and of the Pyroscope SDKs.
constexpr std::array<std::string_view, 4> kLevels = {"inuse_space", "inuse_objects", "goroutine",
                                                     "goroutines"};
// Steps in which a mean over a range is looked for.
constexpr int64_t kMeanSteps = 500;
// A series whose profiles lie this much further apart than they did was away.
constexpr int64_t kMissedProfiles = 3;

// Scales the column so that its sum becomes `total`.
void ScaleColumn(size_t column, double total, pprof::Profile* profile) {
  const size_t width = profile->sample_types.size();
  double sum = 0;
  for (size_t i = column; i < profile->values.size(); i += width)
    sum += static_cast<double>(profile->values[i]);
  if (sum == 0 || total == 0) return;
  for (size_t i = column; i < profile->values.size(); i += width) {
    const double scaled = static_cast<double>(profile->values[i]) * (total / sum);
    profile->values[i] = std::llround(scaled);
  }
}

}  // namespace

bool IsLevel(const SampleType& type) {
  return std::ranges::find(kLevels, type.type) != kLevels.end();
}

Level::Level(const TimeRange& range, int64_t step_ns)
    : range_(range),
      step_ns_(step_ns),
      sums_(static_cast<size_t>((range.until_ns - range.from_ns) / step_ns) + 1),
      covered_ns_(sums_.size()) {}

int64_t Level::LengthOf(size_t step) const {
  const int64_t begin_ns = range_.from_ns + static_cast<int64_t>(step) * step_ns_;
  return std::min(step_ns_, range_.until_ns - begin_ns);
}

// The series has its value from its time until `end_ns`.
void Level::Hold(Series& series, int64_t end_ns) {
  int64_t begin = std::max(series.time_ns, range_.from_ns) - range_.from_ns;
  const int64_t end = std::min(end_ns, range_.until_ns) - range_.from_ns;
  while (begin < end) {
    const auto step = static_cast<size_t>(begin / step_ns_);
    const int64_t part = std::min(end, static_cast<int64_t>(step + 1) * step_ns_) - begin;
    sums_[step] += static_cast<double>(series.value) * static_cast<double>(part);
    if (series.step != step) series.covered_ns = 0;
    series.step = step;
    series.covered_ns += part;
    covered_ns_[step] = std::max(covered_ns_[step], series.covered_ns);
    begin += part;
  }
}

void Level::Add(const ProfileTotal& profile) {
  const auto [found, added] = series_.try_emplace(profile.labels);
  Series& series = found->second;
  if (!added) {
    const int64_t gap_ns = profile.time_ns - series.time_ns;
    if (series.gap_ns == 0) series.gap_ns = gap_ns;
    const bool was_away = gap_ns > kMissedProfiles * series.gap_ns;
    Hold(series, was_away ? series.time_ns + series.gap_ns : profile.time_ns);
    if (!was_away) series.gap_ns = gap_ns;
  }
  series.time_ns = profile.time_ns;
  series.value = profile.total.value;
}

void Level::Finish() {
  for (auto& [labels, series] : series_)
    Hold(series, series.time_ns + (series.gap_ns == 0 ? kUsualGapNs : series.gap_ns));
}

std::vector<int64_t> Level::Points() const {
  std::vector<int64_t> points(sums_.size());
  for (size_t step = 0; step < points.size(); ++step) {
    const int64_t length_ns = LengthOf(step);
    if (length_ns > 0) points[step] = std::llround(sums_[step] / static_cast<double>(length_ns));
    // The range ends where this step would begin.
    if (length_ns <= 0 && step > 0) points[step] = points[step - 1];
  }
  return points;
}

double Level::Mean() const {
  double sum = 0;
  int64_t covered_ns = 0;
  for (size_t step = 0; step < sums_.size(); ++step) {
    sum += sums_[step];
    covered_ns += covered_ns_[step];
  }
  return covered_ns == 0 ? 0 : sum / static_cast<double>(covered_ns);
}

Status MeanLevels(Database* database, const Selector& selector, const TimeRange& range,
                  MergedProfile* merged) {
  pprof::Profile& profile = merged->profile;
  const auto text = [&](uint32_t index) { return std::string(profile.strings.Get(index)); };
  const size_t width = profile.sample_types.size();
  for (size_t column = 0; column < width; ++column) {
    const SampleType type = {.type = text(profile.sample_types[column].type),
                             .unit = text(profile.sample_types[column].unit),
                             .period_type = text(profile.period_type.type),
                             .period_unit = text(profile.period_type.unit)};
    if (!IsLevel(type)) continue;
    Selector one = selector;
    static_cast<SampleType&>(one.sample_type) = type;
    Level level(range, std::max<int64_t>(1, (range.until_ns - range.from_ns) / kMeanSteps));
    FF_RETURN_IF_ERROR(database->SelectTotals(one, {range.from_ns - kLookBackNs, range.until_ns},
                                              [&](const ProfileTotal& total) {
                                                level.Add(total);
                                                return OkStatus();
                                              }));
    level.Finish();
    ScaleColumn(column, level.Mean(), &profile);
  }
  return OkStatus();
}

}  // namespace flamefleet::store
