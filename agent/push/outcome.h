// SPDX-License-Identifier: Apache-2.0
// What the answer to a push means: delivered, try again, split, or drop.
//
// clang-format off
// | answer                              | outcome                                               |
// |-------------------------------------|-------------------------------------------------------|
// | 200                                 | delivered                                             |
// | 200 with a web page                 | retry: something else answers at this endpoint        |
// | no answer (network, TLS, timeout)   | retry                                                 |
// | 408, 429, 502, 503, 504             | retry, not before Retry-After                         |
// | 429 to a profile over kLargeProfile | split: it may be larger than the server's burst       |
// | 401, 403                            | retry: somebody will mend the credentials             |
// | 3xx, 404, 405, 415, 501             | retry: somebody will mend the endpoint                |
// | other 5xx                           | retry, at most kMaxServerErrors times: a profile that |
// |                                     | the backend cannot read is a 500 as well              |
// | 413, 400 about size or samples      | split                                                 |
// | 400 about the ingestion window      | drop: Expired                                         |
// | other 4xx and anything else         | drop: BackendRefused                                  |
//
// That of a call over gRPC, by its code:
//
// | code                                | outcome                                               |
// |-------------------------------------|-------------------------------------------------------|
// | OK                                  | delivered                                             |
// | UNAVAILABLE, DEADLINE_EXCEEDED,     | retry: no server, none of HTTP/2, or no time          |
// | CANCELLED, ABORTED                  |                                                       |
// | UNAUTHENTICATED, PERMISSION_DENIED  | retry: somebody will mend the credentials             |
// | UNIMPLEMENTED, NOT_FOUND            | retry: somebody will mend the endpoint                |
// | RESOURCE_EXHAUSTED about the size   | split                                                 |
// | other RESOURCE_EXHAUSTED            | retry; a profile over kLargeProfile: split            |
// | UNKNOWN, INTERNAL, DATA_LOSS        | retry, at most kMaxServerErrors times                 |
// | INVALID_ARGUMENT and the others     | drop: BackendRefused                                  |
// clang-format on
//
// Thread: any; pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/http/client.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr int kMaxServerErrors = 5;
// A server that asks for more is asked again after this time.
constexpr std::chrono::seconds kMaxRetryAfter{300};
// Uncompressed. Pyroscope lets a burst of 2 MiB through, so what is larger never passes.
constexpr int64_t kLargeProfile = 1 << 20;

struct Outcome {
  enum class Kind { kDelivered, kRetry, kSplit, kDrop };
  Kind kind = Kind::kDelivered;
  std::chrono::milliseconds retry_after{0};  // what the server asked for; 0: nothing
  bool back_off = false;        // the backend is in trouble, whatever becomes of this profile
  bool may_be_profile = false;  // counts towards kMaxServerErrors
  std::string_view reason;      // of what is not delivered, from base/reasons.h
  std::string message;          // what went wrong, for people
};

struct PushedProfile {
  int server_errors = 0;  // that it has had before
  int64_t bytes = 0;      // uncompressed
};

Outcome JudgeAnswer(const Result<HttpResponse>& answer, const PushedProfile& profile);
Outcome JudgeCall(const Status& answer, const PushedProfile& profile);

}  // namespace flamefleet::agent
