// SPDX-License-Identifier: Apache-2.0
// The Pyroscope push API: from the bytes of a request to profiles that can be stored.
//
// Pure: no clock, no disk. A request with good and bad profiles gives both the good ones and the
// first error, as Pyroscope does; the client is told, and a retry of the good ones is harmless.
//
// Thread: any. Bounds: PushLimits.
// Source: what Pyroscope answers on the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/pprof/profile.h"
#include "base/status.h"
#include "store/db/day.h"

namespace flamefleet::pyroscope {
class PushRequest;
}

namespace flamefleet::store {

enum class PushEncoding { kProto, kJson };

// Why a profile is not stored: label values of a metric.
enum class Refusal {
  kNone,
  kMalformedRequest,
  kMalformedProfile,
  kInvalidLabels,
  kTooOld,
  kTooNew,
  kTooLarge,
};

struct PushLimits {
  size_t max_request_bytes = 64 << 20;  // after decompression
  size_t max_labels = 30;
  size_t max_label_name_bytes = 1024;
  size_t max_label_value_bytes = 2048;
  int64_t max_age_ns = 0;                                    // the retention of the store
  int64_t max_future_ns = int64_t{10} * 60 * 1'000'000'000;  // clocks of senders differ
  pprof::DecodeLimits profile{.max_bytes = 16 << 20, .max_samples = 1 << 18};
};

struct PushResult {
  std::vector<NewProfile> profiles;
  Status error;  // kInvalidArgument, or kResourceExhausted when something is too large
  Refusal refusal = Refusal::kNone;
  size_t refused = 0;  // profiles
};

// `body` is decompressed already.
PushResult ReadPush(std::string_view body, PushEncoding encoding, const PushLimits& limits,
                    int64_t now_ns);
// The same of a request that is parsed already; takes its profiles.
PushResult ReadPushRequest(pyroscope::PushRequest* request, const PushLimits& limits,
                           int64_t now_ns);

}  // namespace flamefleet::store
