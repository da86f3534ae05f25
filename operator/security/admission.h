// SPDX-License-Identifier: Apache-2.0
// Admission: who an agent is, or why it is refused. What decides (operator/security) and what
// enforces (operator/control) share it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"

namespace flamefleet::security {

// Why an agent was refused: label values of flamefleet_operator_agents_refused_total. Each is
// explained in docs/security.md.
namespace refusal {
inline constexpr std::string_view kNoToken = "NoToken";
inline constexpr std::string_view kMalformedToken = "MalformedToken";
inline constexpr std::string_view kTokenExpired = "TokenExpired";
inline constexpr std::string_view kWrongAudience = "WrongAudience";
inline constexpr std::string_view kTokenRefused = "TokenRefused";
inline constexpr std::string_view kWrongAccount = "WrongAccount";
inline constexpr std::string_view kNoNode = "NoNode";
inline constexpr std::string_view kNodeMismatch = "NodeMismatch";
inline constexpr std::string_view kReviewFailed = "ReviewFailed";
inline constexpr std::string_view kTooManyAgents = "TooManyAgents";
inline constexpr std::string_view kNoHello = "NoHello";
inline constexpr std::array kAll = {kNoToken,      kMalformedToken, kTokenExpired, kWrongAudience,
                                    kTokenRefused, kWrongAccount,   kNoNode,       kNodeMismatch,
                                    kReviewFailed, kTooManyAgents,  kNoHello};
}  // namespace refusal

struct AgentIdentity {
  std::string node;
  std::string pod;            // the name of the agent's pod
  int64_t expires_at_ns = 0;  // wall clock, of the token

  friend bool operator==(const AgentIdentity&, const AgentIdentity&) = default;
};

struct Admission {
  Status status;             // kUnauthenticated, kPermissionDenied or kUnavailable when refused
  std::string_view refusal;  // one of refusal::kAll; empty when admitted
  AgentIdentity identity;    // when admitted
};

// Judges a bearer token; may block until `stop`. Thread: any number at a time.
using Authenticate =
    std::function<Admission(const std::string& token, const std::stop_token& stop)>;

}  // namespace flamefleet::security
