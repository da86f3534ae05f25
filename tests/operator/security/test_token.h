// SPDX-License-Identifier: Apache-2.0
// TestToken: a JWT with these claims and a signature that nobody made.
#pragma once

#include <algorithm>
#include <string>

#include "base/base64.h"

namespace flamefleet::security {

inline std::string Base64Url(const std::string& bytes) {
  std::string text = EncodeBase64(bytes);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  text.erase(std::find(text.begin(), text.end(), '='), text.end());
  return text;
}

inline std::string TestToken(const std::string& claims, const std::string& signature = "signed") {
  return Base64Url(R"({"alg":"RS256"})") + "." + Base64Url(claims) + "." + Base64Url(signature);
}

}  // namespace flamefleet::security
