// SPDX-License-Identifier: Apache-2.0
#include "operator/api/secret.h"

#include "base/base64.h"
#include "operator/api/json_reader.h"

namespace flamefleet::api {

Result<Secret> DecodeSecret(const nlohmann::json& object) {
  const ObjectReader root(object, "Secret");
  Secret secret;
  ReadMeta(root, secret.meta);
  root.String("type", secret.type);
  StringMap encoded;
  root.Map("data", encoded);
  if (!root.status().ok()) return root.status();
  for (const auto& [key, text] : encoded) {
    Result<std::string> value = DecodeBase64(text);
    if (!value.ok()) return Annotate(value.status(), "decode Secret.data." + key);
    secret.data[key] = *std::move(value);
  }
  return secret;
}

}  // namespace flamefleet::api
