// SPDX-License-Identifier: Apache-2.0
#include "agent/push/split_push.h"

#include <utility>

#include "base/gzip.h"
#include "base/pprof/merge.h"
#include "base/pprof/profile.h"
#include "proto/pyroscope/push.pb.h"

namespace flamefleet::agent {
namespace {

// Of one half in memory.
constexpr size_t kMaxHalfBytes = 256 << 20;
constexpr size_t kGzipTrailer = 4;  // its last bytes: the size, little endian

// The samples [first, last) of `profile`, and only what they refer to.
Result<std::string> Half(const pprof::Profile& profile, size_t first, size_t last,
                         int64_t time_ns) {
  pprof::Profile part = profile;
  const size_t width = profile.sample_types.size();
  const auto at = [](size_t index) { return static_cast<std::ptrdiff_t>(index); };
  part.samples.assign(profile.samples.begin() + at(first), profile.samples.begin() + at(last));
  part.values.assign(profile.values.begin() + at(first * width),
                     profile.values.begin() + at(last * width));
  pprof::Merger merger(kMaxHalfBytes);
  FF_RETURN_IF_ERROR(merger.Add(part));
  part = merger.Take();
  part.time_ns = time_ns;
  std::string encoded;
  pprof::Encode(part, &encoded);
  return Gzip(encoded);
}

}  // namespace

Result<std::vector<SpooledProfile>> SplitPush(const SpooledProfile& profile) {
  pyroscope::PushRequest request;
  if (!request.ParseFromString(profile.body) || request.series_size() != 1 ||
      request.series(0).samples_size() != 1) {
    return InvalidArgumentError("split a push: not one series with one profile");
  }
  std::string* const raw = request.mutable_series(0)->mutable_samples(0)->mutable_raw_profile();
  pprof::Profile whole;
  FF_RETURN_IF_ERROR(pprof::Decode(*raw, {}, &whole));
  const size_t count = whole.samples.size();
  const int64_t spread = profile.spread_ns / 2;
  if (count < 2 || spread == 0) {
    return ResourceExhaustedError("a profile of " + std::to_string(count) +
                                  " samples cannot be split further");
  }
  std::vector<SpooledProfile> parts;
  for (const bool second : {false, true}) {
    SpooledProfile& part = parts.emplace_back(profile);
    part.errors = 0;
    part.spread_ns = spread;
    part.time_ns = profile.time_ns + (second ? spread : 0);
    FF_ASSIGN_OR_RETURN(*raw, Half(whole, second ? count / 2 : 0, second ? count : count / 2,
                                   whole.time_ns + (second ? spread : 0)));
    part.raw_bytes = UncompressedBytes(*raw);
    part.body = request.SerializeAsString();
  }
  return parts;
}

int64_t UncompressedBytes(std::string_view pprof) {
  if (!IsGzip(pprof) || pprof.size() < kGzipTrailer) return static_cast<int64_t>(pprof.size());
  int64_t size = 0;
  for (size_t i = 0; i < kGzipTrailer; ++i) {
    const auto byte = static_cast<unsigned char>(pprof[pprof.size() - kGzipTrailer + i]);
    size |= int64_t{byte} << (8 * i);
  }
  return size;
}

}  // namespace flamefleet::agent
