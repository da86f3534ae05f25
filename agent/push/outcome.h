// SPDX-License-Identifier: Apache-2.0
// What the answer to a push means: delivered, try again, or drop.
//
// | answer                         | outcome                                                    |
// |--------------------------------|------------------------------------------------------------|
// | 200                            | delivered                                                  |
// | no answer (network, timeout)   | retry                                                      |
// | 408, 429, 502, 503, 504        | retry, not before Retry-After                              |
// | other 5xx                      | retry, at most kMaxServerErrors times: a profile that the  |
// |                                | backend cannot read is a 500 as well                       |
// | anything else                  | drop: BackendRefused                                       |
//
// Thread: any; pure.
#pragma once

#include <chrono>
#include <string>

#include "base/http/client.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr int kMaxServerErrors = 5;
// A server that asks for more is asked again after this time.
constexpr std::chrono::seconds kMaxRetryAfter{300};

struct Outcome {
  enum class Kind { kDelivered, kRetry, kDrop };
  Kind kind = Kind::kDelivered;
  std::chrono::milliseconds retry_after{0};  // what the server asked for; 0: nothing
  bool server_error = false;                 // counts towards kMaxServerErrors
  std::string message;                       // what went wrong, for people
};

// `server_errors`: how many of them this profile has had before.
Outcome JudgeAnswer(const Result<HttpResponse>& answer, int server_errors);

}  // namespace flamefleet::agent
