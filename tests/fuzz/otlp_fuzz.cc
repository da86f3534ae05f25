// SPDX-License-Identifier: Apache-2.0
// Any body of an OTLP request: what is taken has a valid profile and complete labels, what is not
// is counted.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "store/ingest/otlp.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::store;  // NOLINT(google-build-using-namespace)
  constexpr int64_t kNow = 1'764'435'600 * kNanosPerSecond;
  PushLimits limits;
  limits.max_age_ns = INT64_MAX / 2;
  limits.max_request_bytes = 1 << 20;
  limits.profile.max_bytes = 1 << 20;
  const PushResult push =
      ReadOtlp(std::string_view(reinterpret_cast<const char*>(data), size), limits, kNow);
  FF_CHECK((push.refusal == Refusal::kNone) == push.error.ok());
  FF_CHECK((push.refusal == Refusal::kNone) == (push.refused == 0));
  for (const NewProfile& profile : push.profiles) {
    FF_CHECK(profile.labels.contains(kProfileName) && profile.labels.contains(kServiceName));
    FF_CHECK(!profile.pprof.empty() && profile.time_ns != 0);
  }
  return 0;
}
