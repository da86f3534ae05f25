// SPDX-License-Identifier: Apache-2.0
// PushClient: one backend that speaks the Pyroscope push API: address, trust and credentials.
//
// Thread: any; calls block and may run in parallel. Bounds: kPushTimeout per push.
// Errors: Create: kInvalidArgument, the message says whether it is the endpoint or a certificate.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "base/http/client.h"
#include "base/status.h"

namespace flamefleet::agent {

// Pyroscope answers after 0.4 to 0.5 s; a store on a busy disk needs longer.
constexpr std::chrono::seconds kPushTimeout{30};

struct BackendConfig {
  std::string name;
  std::string endpoint;     // base URL, with or without a path
  std::string tenant_id;    // X-Scope-OrgID; empty: none
  std::string ca_pem;       // trusted roots of https; empty: the system's
  std::string server_name;  // empty: the endpoint's host
  bool insecure_skip_verify = false;
  std::string authorization;        // value of the header, a secret; empty: none
  bool hold = false;                // its profiles wait: its credentials are not known
  int64_t ingestion_window_ns = 0;  // older profiles are not sent; 0: no limit
  int64_t bytes_per_second = 0;     // uncompressed; 0: no limit
  int64_t max_profile_bytes = 0;    // uncompressed, larger ones are split; 0: no limit

  friend bool operator==(const BackendConfig&, const BackendConfig&) = default;
};

class PushClient {
 public:
  static Result<std::shared_ptr<const PushClient>> Create(
      const BackendConfig& config, std::chrono::milliseconds timeout = kPushTimeout);

  // `body` is a PushRequest.
  Result<HttpResponse> Send(const std::string& body, const std::stop_token& stop) const;

 private:
  PushClient(std::unique_ptr<HttpClient> http, std::string target,
             std::map<std::string, std::string> headers, std::chrono::milliseconds timeout)
      : http_(std::move(http)),
        target_(std::move(target)),
        headers_(std::move(headers)),
        timeout_(timeout) {}

  const std::unique_ptr<HttpClient> http_;
  const std::string target_;
  const std::map<std::string, std::string> headers_;
  const std::chrono::milliseconds timeout_;
};

}  // namespace flamefleet::agent
