// SPDX-License-Identifier: Apache-2.0
// Any body of /ingest, as a form, a pprof or text by the first byte: what is taken has a valid
// profile and complete labels.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "store/ingest/ingest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::store;  // NOLINT(google-build-using-namespace)
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr int64_t kNow = 1'764'435'600 * kNanosPerSecond;
  PushLimits limits;
  limits.max_age_ns = INT64_MAX / 2;
  limits.profile.max_bytes = 1 << 20;
  IngestRequest request{.name = "shop", .body = body};
  switch (data[0] % 5) {
    case 0:
      request.content_type = "multipart/form-data; boundary=X";
      break;
    case 1:
      request.format = "pprof";
      break;
    case 2:
      request.format = "lines";
      break;
    case 3:
      request.name = body.substr(0, body.find('\n'));
      break;
    default:
      break;
  }
  const PushResult push = ReadIngest(request, limits, kNow);
  FF_CHECK((push.refusal == Refusal::kNone) == push.error.ok());
  for (const NewProfile& profile : push.profiles) {
    FF_CHECK(profile.labels.contains(kProfileName) && profile.labels.contains(kServiceName));
    FF_CHECK(!profile.pprof.empty() && profile.time_ns != 0);
  }
  return 0;
}
