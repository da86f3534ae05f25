// SPDX-License-Identifier: Apache-2.0
// Fetch: one GET of a server that is not trusted, such as a pod: every byte and second is bounded.
//
// Thread: any; blocks the caller. A connection per call; redirects are told, not followed; no
// credentials.
// Units:  milliseconds.
// Bounds: header and body bytes, the time of the whole exchange.
// Errors: kFailedPrecondition nothing listens on the port; kUnavailable not reachable, or cut
// before
//         the end; kDeadlineExceeded the timeout; kResourceExhausted header or body over the bound;
//         kInvalidArgument the answer is not HTTP or not TLS, or the address is none;
//         kPermissionDenied the server's certificate is not trusted; kCancelled stop.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "base/status.h"

namespace flamefleet {

// HTTPS, from TLS 1.2 on.
struct FetchTls {
  bool insecure_skip_verify = false;
  std::string ca_pem;       // trusted roots; empty: the system's
  std::string server_name;  // that the certificate must be for; empty: the address

  friend bool operator==(const FetchTls&, const FetchTls&) = default;
};

struct FetchOptions {
  std::string address;  // IPv4 or IPv6, no name, no brackets
  uint16_t port = 0;
  std::string target = "/";  // path and query, already encoded
  size_t max_header_bytes = 16 << 10;
  size_t max_body_bytes = 16 << 20;
  std::chrono::milliseconds timeout{10'000};
  std::optional<FetchTls> tls;  // absent: plain HTTP
  // Called between header and body, for callers who wait with many requests and read few bodies at
  // a time. It may wait; an error is that of the call. From then on the body has a time of its own.
  std::function<Status()> before_body;
  std::chrono::milliseconds body_timeout{5'000};
};

struct FetchResponse {
  int status = 0;
  std::string body;
  std::string location;  // where a redirect leads, as the server says it
};

Result<FetchResponse> Fetch(const FetchOptions& options, const std::stop_token& stop);

}  // namespace flamefleet
