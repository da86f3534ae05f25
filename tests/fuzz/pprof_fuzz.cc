// SPDX-License-Identifier: Apache-2.0
// Any bytes: Decode refuses them or gives a profile that everything else can work with.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/pprof/merge.h"
#include "base/pprof/profile.h"
#include "base/pprof/top.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet::pprof;  // NOLINT(google-build-using-namespace)
  constexpr size_t kMaxBytes = 1 << 20;
  const DecodeLimits limits{.max_bytes = kMaxBytes};
  Profile profile;
  if (!Decode({reinterpret_cast<const char*>(data), size}, limits, &profile).ok()) return 0;
  std::string encoded;
  Encode(profile, &encoded);
  Profile again;
  FF_CHECK(Decode(encoded, DecodeLimits{}, &again).ok());
  std::string encoded_again;
  Encode(again, &encoded_again);
  FF_CHECK(encoded == encoded_again);

  if (profile.sample_types.empty()) return 0;
  Merger merger(64 * kMaxBytes);
  if (!merger.Add(profile).ok() || !merger.Add(again).ok()) return 0;
  const Profile merged = merger.Take();
  FF_CHECK(TotalValue(merged, 0) ==
           static_cast<int64_t>(2 * static_cast<uint64_t>(TotalValue(profile, 0))));
  HottestFunctions(merged, 0, 10);
  return 0;
}
