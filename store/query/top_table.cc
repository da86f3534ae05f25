// SPDX-License-Identifier: Apache-2.0
#include "store/query/top_table.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>

#include "base/clock.h"
#include "base/pprof/top.h"
#include "store/query/full_type.h"

namespace flamefleet::store {
namespace {

struct Scale {
  double factor;
  const char* unit;
};

constexpr std::array<Scale, 5> kTimeScales = {
    {{3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "us"}}};
constexpr std::array<Scale, 4> kByteScales = {{{1024.0 * 1024 * 1024 * 1024, "TB"},
                                               {1024.0 * 1024 * 1024, "GB"},
                                               {1024.0 * 1024, "MB"},
                                               {1024, "kB"}}};

template <typename... Arguments>
std::string Format(const char* format, Arguments... arguments) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), format, arguments...);
  return text.data();
}

std::string Scaled(int64_t value, std::span<const Scale> scales, const char* smallest) {
  const auto number = static_cast<double>(value);
  for (const Scale& scale : scales) {
    if (std::abs(number) >= scale.factor)
      return Format("%.2f%s", number / scale.factor, scale.unit);
  }
  return std::to_string(value) + smallest;
}

// Names come from the programs that were profiled; a terminal obeys control characters.
std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

double Percent(int64_t part, int64_t total) {
  return total == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(total);
}

}  // namespace

std::string FormatValue(int64_t value, std::string_view unit) {
  if (unit == "nanoseconds") return Scaled(value, kTimeScales, "ns");
  if (unit == "bytes") return Scaled(value, kByteScales, "B");
  return std::to_string(value);
}

std::string TopAsText(const MergedProfile& merged, const TimeRange& range, size_t limit) {
  const size_t index = pprof::DefaultSampleType(merged.profile);
  const pprof::ValueType& type = merged.profile.sample_types[index];
  const std::string_view unit = merged.profile.strings.Get(type.unit);
  const pprof::Top top = pprof::HottestFunctions(merged.profile, index, limit);

  std::string text = "type      " + Printable(FullType(merged, index)) + "\n";
  text +=
      "range     " + FormatRfc3339(range.from_ns) + " to " + FormatRfc3339(range.until_ns) + "\n";
  text += "profiles  " + std::to_string(merged.profiles) + " of " + std::to_string(merged.series) +
          " series\n";
  text += "total     " + FormatValue(top.total, unit) + "\n\n";
  text += Format("%12s %7s %12s %7s  %s\n", "flat", "flat%", "cum", "cum%", "function");
  for (const pprof::TopFunction& f : top.functions) {
    text += Format("%12s %6.2f%% %12s %6.2f%%  ", FormatValue(f.flat, unit).c_str(),
                   Percent(f.flat, top.total), FormatValue(f.cum, unit).c_str(),
                   Percent(f.cum, top.total));
    text += Printable(f.name) + "\n";
  }
  if (top.functions.size() < top.function_count) {
    text += "... " + std::to_string(top.function_count - top.functions.size()) +
            " more functions; limit=" + std::to_string(top.function_count) + " shows all\n";
  }
  return text;
}

std::string TopAsJson(const MergedProfile& merged, const TimeRange& range, size_t limit) {
  const size_t index = pprof::DefaultSampleType(merged.profile);
  const pprof::ValueType& type = merged.profile.sample_types[index];
  const pprof::Top top = pprof::HottestFunctions(merged.profile, index, limit);
  nlohmann::json functions = nlohmann::json::array();
  for (const pprof::TopFunction& f : top.functions) {
    functions.push_back({{"name", f.name}, {"flat", f.flat}, {"cum", f.cum}});
  }
  const nlohmann::json json = {{"type", FullType(merged, index)},
                               {"unit", std::string(merged.profile.strings.Get(type.unit))},
                               {"from", FormatRfc3339(range.from_ns)},
                               {"until", FormatRfc3339(range.until_ns)},
                               {"profiles", merged.profiles},
                               {"series", merged.series},
                               {"total", top.total},
                               {"functionCount", top.function_count},
                               {"functions", std::move(functions)}};
  return json.dump() + "\n";
}

}  // namespace flamefleet::store
