// SPDX-License-Identifier: Apache-2.0
// TokenClaims: what a service-account token (JWT) says of itself. Nothing here is verified: it
// tells a hopeless token from one that is worth asking the API server about, and when that ends.
//
// Thread: any; pure. Bounds: kMaxTokenBytes. Errors: kInvalidArgument a text that is no such token.
// Source: RFC 7519, RFC 7515 (compact serialisation).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace flamefleet::security {

inline constexpr size_t kMaxTokenBytes = 16 << 10;  // projected ones have about 1 KiB

struct TokenClaims {
  std::vector<std::string> audiences;
  int64_t expires_at_ns = 0;  // wall clock
};

Result<TokenClaims> ReadTokenClaims(const std::string& token);

}  // namespace flamefleet::security
