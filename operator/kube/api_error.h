// SPDX-License-Identifier: Apache-2.0
// ApiError: what the API server says when it does not do what it was asked (a metav1.Status).
//
// Thread: any. Errors: none; an answer that is not a Status still becomes an ApiError with its HTTP
// status.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "operator/kube/server_object.h"

namespace flamefleet {

struct ApiErrorCause {
  std::string field;  // "spec.sampling.frequency"
  std::string reason;
  std::string message;
};

struct ApiError {
  // What a server may ask us to wait; it asks for 1 to 32 seconds.
  static constexpr std::chrono::seconds kMaxRetryAfter{60};

  int http_status = 0;
  std::string reason;  // "AlreadyExists", "Conflict", "Expired", ...; empty when it gave none
  std::string message;
  std::vector<ApiErrorCause> causes;
  std::optional<std::chrono::seconds> retry_after;  // at most kMaxRetryAfter

  // The list or watch started from a version that the server no longer has.
  bool IsExpired() const;
  // The server has not seen the version that was asked for: it is behind, or was restored.
  bool IsTooLargeVersion() const;
  // "operation: message" with a code that says whether a retry helps:
  //   400, 413, 415, 422 kInvalidArgument; 403 kPermissionDenied; 404 kNotFound;
  //   409 kAlreadyExists or kAborted (conflict); 410 kAborted; 429 kResourceExhausted;
  //   401 (the token may have been rotated) and 5xx kUnavailable; 504 kDeadlineExceeded.
  Status ToStatus(const std::string& operation) const;
};

// `retry_after` is the header's value, empty if there was none.
ApiError DecodeApiError(int http_status, const std::string& retry_after, std::string_view body);
// The Status object of an ERROR event of a watch.
ApiError DecodeApiError(const ServerObject& status);

}  // namespace flamefleet
