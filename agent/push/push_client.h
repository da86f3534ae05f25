// SPDX-License-Identifier: Apache-2.0
// PushClient: one backend in the protocol that it speaks: address, trust and credentials, and what
// its answers mean (outcome.h).
//
// The spool keeps every profile in one form, a PushRequest of Pyroscope; a client of another
// protocol turns it into its own when it sends.
//
// Thread: any; calls block and may run in parallel. Bounds: kPushTimeout per push.
// Errors: Create: kInvalidArgument, the message says whether it is the endpoint or a certificate.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "agent/push/outcome.h"
#include "agent/spool/spool.h"
#include "base/status.h"

namespace flamefleet::agent {

// Pyroscope answers after 0.4 to 0.5 s; a store on a busy disk needs longer.
constexpr std::chrono::seconds kPushTimeout{30};

enum class BackendProtocol { kPyroscope, kParca, kOtlp };

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
  BackendProtocol protocol = BackendProtocol::kPyroscope;

  friend bool operator==(const BackendConfig&, const BackendConfig&) = default;
};

class PushClient {
 public:
  static Result<std::shared_ptr<const PushClient>> Create(
      const BackendConfig& config, std::chrono::milliseconds timeout = kPushTimeout);

  PushClient() = default;
  PushClient(const PushClient&) = delete;
  PushClient& operator=(const PushClient&) = delete;
  virtual ~PushClient() = default;

  // Sends the profile and judges what the backend answers. When stop is requested it ends early,
  // and what it says means nothing.
  virtual Outcome Push(const SpooledProfile& profile, const std::stop_token& stop) const = 0;
};

}  // namespace flamefleet::agent
