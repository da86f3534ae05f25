// SPDX-License-Identifier: Apache-2.0
#include "store/match/time_range.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/clock.h"

namespace flamefleet::store {
namespace {

constexpr int64_t kNanosPerDay = 86'400 * kNanosPerSecond;
constexpr char kDefaultFrom[] = "now-1h";
// A Unix time below it is in seconds (until the year 2255), below a thousand times it in
// milliseconds, and so on.
constexpr int64_t kMaxSeconds = 9'000'000'000;

Status BadTime(const std::string& text) {
  return InvalidArgumentError(
      "time '" + text + "': want now, now-1h, RFC 3339 or a Unix time in seconds or milliseconds");
}

bool ParseWhole(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

Result<int64_t> ParseAge(const std::string& text) {
  constexpr int64_t kMaxDays = 36'500;
  int64_t days = 0;
  if (text.ends_with('d') && ParseWhole(std::string_view(text).substr(0, text.size() - 1), &days) &&
      days >= 0 && days <= kMaxDays) {
    return days * kNanosPerDay;
  }
  return ParseDuration(text);
}

}  // namespace

Result<int64_t> ParseTime(const std::string& text, int64_t now_ns) {
  if (text == "now") return now_ns;
  if (text.starts_with("now-")) {
    const Result<int64_t> age = ParseAge(text.substr(4));
    if (!age.ok()) return BadTime(text);
    return now_ns - *age;
  }
  int64_t number = 0;
  if (ParseWhole(text, &number)) {
    if (number < 0) return BadTime(text);
    int64_t unit = kNanosPerSecond;
    while (unit > 1 && number >= kMaxSeconds * (kNanosPerSecond / unit))
      unit /= 1000;
    return number * unit;
  }
  const Result<int64_t> time = ParseRfc3339(text);
  if (!time.ok()) return BadTime(text);
  return time;
}

Result<TimeRange> ParseTimeRange(const std::string& from, const std::string& until,
                                 int64_t now_ns) {
  TimeRange range;
  FF_ASSIGN_OR_RETURN(range.from_ns, ParseTime(from.empty() ? kDefaultFrom : from, now_ns));
  FF_ASSIGN_OR_RETURN(range.until_ns, ParseTime(until.empty() ? "now" : until, now_ns));
  // Nothing is older, and the difference of two times fits.
  range.from_ns = std::max<int64_t>(range.from_ns, 0);
  range.until_ns = std::max<int64_t>(range.until_ns, 0);
  if (range.until_ns < range.from_ns) {
    return InvalidArgumentError("time range: until (" + FormatRfc3339(range.until_ns) +
                                ") is before from (" + FormatRfc3339(range.from_ns) + ")");
  }
  return range;
}

}  // namespace flamefleet::store
