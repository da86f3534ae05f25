// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/rewrite.h"

#include "base/gzip.h"
#include "base/pprof/merge.h"

namespace flamefleet::agent {
namespace {

// Memory of the compact copy.
constexpr size_t kMaxMergedBytes = 64 << 20;

}  // namespace

Result<std::optional<RewrittenProfile>> RewriteProfile(std::string_view body, int64_t time_ns,
                                                       std::chrono::nanoseconds duration,
                                                       Delta* delta) {
  pprof::Profile profile;
  FF_RETURN_IF_ERROR(pprof::Decode(body, {.max_bytes = kMaxRawBytes}, &profile));
  if (profile.sample_types.empty()) return InvalidArgumentError("the profile has no sample type");
  delta->Apply(&profile);

  // The merger leaves out what has no value left, and all that only it referred to.
  pprof::Merger merger(kMaxMergedBytes);
  FF_RETURN_IF_ERROR(merger.Add(profile));
  profile = merger.Take();
  if (profile.samples.empty()) return std::optional<RewrittenProfile>();
  profile.time_ns = time_ns;
  if (profile.duration_ns <= 0) profile.duration_ns = duration.count();
  std::string raw;
  pprof::Encode(profile, &raw);
  RewrittenProfile rewritten = {.samples = profile.samples.size()};
  FF_ASSIGN_OR_RETURN(rewritten.pprof, Gzip(raw));
  return std::optional<RewrittenProfile>(std::move(rewritten));
}

}  // namespace flamefleet::agent
