// SPDX-License-Identifier: Apache-2.0
// Secret: what the operator reads of a core/v1 Secret. Its values are never logged and never put
// into a status.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/status.h"
#include "operator/api/kinds.h"

namespace flamefleet::api {

struct Secret {
  ObjectMeta meta;
  std::string type;
  StringMap data;  // decoded

  friend bool operator==(const Secret&, const Secret&) = default;
};

// What is known of Secrets, by name: nullptr when there is none of that name; what is not in the
// map has not been read yet.
using SecretMap = std::map<std::string, std::shared_ptr<const Secret>>;

// Errors as DecodePod; a message names the key and never the value.
Result<Secret> DecodeSecret(const nlohmann::json& object);

}  // namespace flamefleet::api
