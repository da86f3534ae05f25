// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/rewrite.h"

#include <algorithm>
#include <functional>

#include "base/gzip.h"
#include "base/pprof/merge.h"

namespace flamefleet::agent {
namespace {

// Backends make the name of a series of it, in which a colon separates.
uint32_t SeriesName(uint32_t text, pprof::StringTable& strings) {
  std::string name(strings.Get(text));
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::ranges::replace_if(name, std::not_fn(is_plain), '_');
  return strings.Intern(name);
}

// What is in no part of the format and still breaks backends: a Parca that has taken one profile
// without a period's type answers no query any more.
void NameSeries(pprof::Profile& profile) {
  if (profile.period_type.type == 0 || profile.period_type.unit == 0)
    profile.period_type = profile.sample_types.front();
  if (profile.period == 0) profile.period = 1;
  const auto name = [&profile](pprof::ValueType& type) {
    type.type = SeriesName(type.type, profile.strings);
    type.unit = SeriesName(type.unit, profile.strings);
  };
  std::ranges::for_each(profile.sample_types, name);
  name(profile.period_type);
}

}  // namespace

Result<std::optional<RewrittenProfile>> RewriteProfile(std::string_view body, int64_t time_ns,
                                                       std::chrono::nanoseconds duration,
                                                       Delta* delta, const ScrapeLimits& limits) {
  pprof::Profile profile;
  FF_RETURN_IF_ERROR(
      pprof::Decode(body, {.max_bytes = limits.raw, .max_memory = limits.decoded}, &profile));
  if (profile.sample_types.empty()) return InvalidArgumentError("the profile has no sample type");
  if (delta != nullptr) FF_RETURN_IF_ERROR(delta->Apply(&profile));

  // The merger leaves out what has no value left, and all that only it referred to.
  pprof::Merger merger(2 * limits.decoded);  // with its tables
  FF_RETURN_IF_ERROR(merger.Add(profile));
  profile = merger.Take();
  if (profile.samples.empty()) return std::optional<RewrittenProfile>();
  profile.time_ns = time_ns;
  NameSeries(profile);
  if (profile.duration_ns <= 0) profile.duration_ns = duration.count();
  std::string raw;
  pprof::Encode(profile, &raw);
  RewrittenProfile rewritten = {.samples = profile.samples.size()};
  FF_ASSIGN_OR_RETURN(rewritten.pprof, Gzip(raw));
  return std::optional<RewrittenProfile>(std::move(rewritten));
}

}  // namespace flamefleet::agent
