// SPDX-License-Identifier: Apache-2.0
#include "base/pprof/top.h"

#include <algorithm>
#include <unordered_map>

#include "base/pprof/frame_name.h"
#include "base/pprof/wrapping_sum.h"

namespace flamefleet::pprof {
namespace {

// Functions by name: two of one name are one row.
class Table {
 public:
  explicit Table(const Profile& profile)
      : profile_(profile), of_location_(profile.locations.size()) {}

  // The rows of the frames of a location, innermost first.
  const std::vector<size_t>& RowsOf(uint32_t location) {
    std::vector<size_t>& rows = of_location_[location];
    if (rows.empty()) {
      ForEachFrameName(profile_, profile_.locations[location],
                       [&](const std::string& name) { rows.push_back(Row(name)); });
    }
    return rows;
  }

  std::vector<TopFunction>& rows() { return rows_; }

 private:
  size_t Row(const std::string& name) {
    const auto [it, is_new] = by_name_.try_emplace(name, rows_.size());
    if (is_new) rows_.push_back({.name = name});
    return it->second;
  }

  const Profile& profile_;
  std::vector<TopFunction> rows_;
  std::unordered_map<std::string, size_t> by_name_;
  std::vector<std::vector<size_t>> of_location_;
};

}  // namespace

Top HottestFunctions(const Profile& profile, size_t value_index, size_t limit) {
  const size_t width = profile.sample_types.size();
  Table table(profile);
  std::vector<size_t>
      last_sample;  // per row: number + 1 of the last sample that was counted in cum
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const Sample& sample = profile.samples[i];
    const int64_t value = profile.values[i * width + value_index];
    bool innermost = true;
    for (uint32_t k = 0; k < sample.location_count; ++k) {
      for (const size_t row : table.RowsOf(profile.sample_locations[sample.first_location + k])) {
        last_sample.resize(table.rows().size());
        TopFunction& function = table.rows()[row];
        if (innermost) function.flat = WrappingSum(function.flat, value);
        innermost = false;
        if (last_sample[row] == i + 1) continue;
        last_sample[row] = i + 1;
        function.cum = WrappingSum(function.cum, value);
      }
    }
  }

  Top top;
  top.total = TotalValue(profile, value_index);
  std::vector<TopFunction>& rows = table.rows();
  std::erase_if(rows, [](const TopFunction& f) { return f.flat == 0 && f.cum == 0; });
  top.function_count = rows.size();
  const size_t count = std::min(limit, rows.size());
  std::partial_sort(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(count), rows.end(),
                    [](const TopFunction& a, const TopFunction& b) {
                      if (a.flat != b.flat) return a.flat > b.flat;
                      if (a.cum != b.cum) return a.cum > b.cum;
                      return a.name < b.name;
                    });
  rows.resize(count);
  top.functions = std::move(rows);
  return top;
}

}  // namespace flamefleet::pprof
