// SPDX-License-Identifier: Apache-2.0
// Any request body, as protobuf (first byte even) or JSON: what is taken has a valid profile and
// complete labels.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "store/ingest/push.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::store;  // NOLINT(google-build-using-namespace)
  if (size == 0) return 0;
  constexpr int64_t kNow = 1'764'435'600 * kNanosPerSecond;
  PushLimits limits;
  limits.max_age_ns = INT64_MAX / 2;
  limits.profile.max_bytes = 1 << 20;
  const auto encoding = data[0] % 2 == 0 ? PushEncoding::kProto : PushEncoding::kJson;
  const PushResult push =
      ReadPush({reinterpret_cast<const char*>(data) + 1, size - 1}, encoding, limits, kNow);
  FF_CHECK((push.refusal == Refusal::kNone) == push.error.ok());
  for (const NewProfile& profile : push.profiles) {
    FF_CHECK(profile.labels.contains(kProfileName) && profile.labels.contains(kServiceName));
    FF_CHECK(!profile.pprof.empty() && profile.time_ns != 0);
  }
  return 0;
}
