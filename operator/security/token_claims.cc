// SPDX-License-Identifier: Apache-2.0
#include "operator/security/token_claims.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/base64.h"
#include "base/clock.h"

namespace flamefleet::security {
namespace {

// Year 9999: what is beyond it is no time that nanoseconds could hold.
constexpr int64_t kMaxExpirySeconds = 9'000'000'000;

Result<std::string> DecodeBase64Url(std::string text) {
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  return DecodeBase64(std::move(text));
}

}  // namespace

Result<TokenClaims> ReadTokenClaims(const std::string& token) {
  if (token.size() > kMaxTokenBytes) return InvalidArgumentError("read a token: too long");
  const size_t first = token.find('.');
  const size_t second = first == std::string::npos ? first : token.find('.', first + 1);
  if (second == std::string::npos || token.find('.', second + 1) != std::string::npos) {
    return InvalidArgumentError("read a token: not three parts");
  }
  FF_ASSIGN_OR_RETURN(const std::string payload,
                      DecodeBase64Url(token.substr(first + 1, second - first - 1)));
  const auto json = nlohmann::json::parse(payload, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidArgumentError("read a token: claims are not JSON");
  TokenClaims claims;
  const auto expiry = json.find("exp");
  if (expiry == json.end() || !expiry->is_number_integer() || expiry->get<int64_t>() < 0 ||
      expiry->get<int64_t>() > kMaxExpirySeconds) {
    return InvalidArgumentError("read a token: without a time of expiry");
  }
  claims.expires_at_ns = expiry->get<int64_t>() * kNanosPerSecond;
  if (const auto audience = json.find("aud"); audience != json.end()) {
    if (audience->is_string()) claims.audiences.push_back(audience->get<std::string>());
    if (audience->is_array()) {
      for (const auto& entry : *audience) {
        if (entry.is_string()) claims.audiences.push_back(entry.get<std::string>());
      }
    }
  }
  return claims;
}

}  // namespace flamefleet::security
