// SPDX-License-Identifier: Apache-2.0
#include "store/query/timeline.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/pprof/wrapping_sum.h"
#include "store/query/full_type.h"
#include "store/query/level.h"

namespace flamefleet::store {
namespace {

// Adds the profile's value to the steps that its time covers, in proportion. Steps begin at
// from_ns.
void Spread(const ProfileTotal& profile, int64_t from_ns, int64_t step_ns,
            std::vector<int64_t>* points) {
  const int64_t value = profile.total.value;
  const int64_t begin = profile.time_ns - from_ns;
  const int64_t duration = std::clamp<int64_t>(profile.duration_ns, 1, kMaxSpreadNs);
  int64_t given = 0;
  for (auto step = static_cast<size_t>(begin / step_ns); step < points->size(); ++step) {
    const int64_t passed = static_cast<int64_t>(step + 1) * step_ns - begin;
    const bool is_last = passed >= duration;
    const int64_t due =
        is_last ? value
                : std::llroundl(static_cast<long double>(value) * static_cast<long double>(passed) /
                                static_cast<long double>(duration));
    int64_t& point = (*points)[step];
    point = pprof::WrappingSum(point, due - given);
    if (is_last) return;
    given = due;
  }
}

// The lines of a selection that is a level, whose lines are known.
Status FillLevels(Database* database, const Selector& selector, const TimeRange& range,
                  const std::string& by_label, Timeline* timeline) {
  std::map<std::string, Level> levels;
  const auto add = [&](const ProfileTotal& profile) {
    const std::string value = by_label.empty() ? "" : ValueOf(profile.labels, by_label);
    if (timeline->lines.contains(value))  // else it is before the range
      levels.try_emplace(value, range, timeline->step_ns).first->second.Add(profile);
    return OkStatus();
  };
  FF_RETURN_IF_ERROR(
      database->SelectTotals(selector, {range.from_ns - kLookBackNs, range.until_ns}, add));
  for (auto& [value, level] : levels) {
    level.Finish();
    timeline->lines[value] = {.total = std::llround(level.Mean()), .points = level.Points()};
  }
  return OkStatus();
}

}  // namespace

Result<Timeline> SelectTimeline(Database* database, const Selector& selector,
                                const TimeRange& range, int64_t step_ns,
                                const std::string& by_label) {
  const auto steps = static_cast<size_t>((range.until_ns - range.from_ns) / step_ns) + 1;
  if (steps > kMaxTimelinePoints) {
    return InvalidArgumentError("step is too short for the range: it gives " +
                                std::to_string(steps) + " points, at most " +
                                std::to_string(kMaxTimelinePoints) + " are allowed");
  }
  Timeline timeline{.step_ns = step_ns};
  const auto add = [&](const ProfileTotal& profile) -> Status {
    const Labels& labels = profile.labels;
    const Total& total = profile.total;
    const std::string type = FullType(ValueOf(labels, kProfileName), total.type);
    if (timeline.type.empty()) {
      timeline.type = type;
      timeline.unit = total.type.unit;
      timeline.is_level = IsLevel(total.type);
    }
    if (type != timeline.type) {
      return FailedPreconditionError("the query means " + timeline.type + " and " + type +
                                     "; name one of them");
    }
    Timeline::Line& line = timeline.lines[by_label.empty() ? "" : ValueOf(labels, by_label)];
    if (timeline.lines.size() > kMaxTimelineLines) {
      return ResourceExhaustedError("label '" + by_label + "' has more than " +
                                    std::to_string(kMaxTimelineLines) +
                                    " values; choose another label or fewer series");
    }
    if (timeline.lines.size() * steps > kMaxTimelineSums) {
      return ResourceExhaustedError("label '" + by_label + "' gives more than " +
                                    std::to_string(kMaxTimelineSums) +
                                    " points; choose a longer step or fewer series");
    }
    line.points.resize(steps);
    Spread(profile, range.from_ns, step_ns, &line.points);
    line.total = pprof::WrappingSum(line.total, total.value);
    return OkStatus();
  };
  FF_RETURN_IF_ERROR(database->SelectTotals(selector, range, add));
  if (timeline.is_level)
    FF_RETURN_IF_ERROR(FillLevels(database, selector, range, by_label, &timeline));
  return timeline;
}

std::string TimelineAsJson(const Timeline& timeline, const TimeRange& range, size_t limit) {
  std::vector<const std::pair<const std::string, Timeline::Line>*> order;
  int64_t total = 0;
  for (const auto& line : timeline.lines) {
    order.push_back(&line);
    total = pprof::WrappingSum(total, line.second.total);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->second.total > b->second.total; });
  order.resize(std::min(limit, order.size()));
  nlohmann::json json = {
      {"type", timeline.type},
      {"unit", timeline.unit},
      {"level", timeline.is_level},
      {"from", FormatRfc3339(range.from_ns)},
      {"until", FormatRfc3339(range.until_ns)},
      {"stepSeconds", static_cast<double>(timeline.step_ns) / kNanosPerSecond},
      {"lineCount", timeline.lines.size()},
      {"total", total},
      {"lines", nlohmann::json::array()},
  };
  for (const auto* line : order) {
    json["lines"].push_back(
        {{"value", line->first}, {"total", line->second.total}, {"points", line->second.points}});
  }
  return json.dump() + "\n";
}

Result<std::string> TypesAsJson(Database* database, const Selector& selector,
                                const TimeRange& range) {
  struct Found {
    std::string unit;
    bool is_default = false;
  };
  std::map<std::string, Found> found;  // by full type
  FF_RETURN_IF_ERROR(
      database->SelectNewestTotals(selector, range, [&](const ProfileTotal& profile) {
        const SampleType& sample_type = profile.total.type;
        Found& type = found[FullType(ValueOf(profile.labels, kProfileName), sample_type)];
        type.unit = sample_type.unit;
        type.is_default |= profile.total.is_default;
        return OkStatus();
      }));
  nlohmann::json types = nlohmann::json::array();
  for (const auto& [type, about] : found)
    types.push_back({{"type", type}, {"unit", about.unit}, {"default", about.is_default}});
  return nlohmann::json({{"types", types}}).dump() + "\n";
}

}  // namespace flamefleet::store
