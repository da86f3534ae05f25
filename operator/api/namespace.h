// SPDX-License-Identifier: Apache-2.0
// Namespace: its labels, which decide whether its pods may opt in.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "operator/api/kinds.h"

namespace flamefleet::api {

struct Namespace {
  ObjectMeta meta;  // without the version, which nobody reads
  StringMap labels;

  friend bool operator==(const Namespace&, const Namespace&) = default;
};

// A v1 Namespace. Errors as DecodePod.
Result<Namespace> DecodeNamespace(const nlohmann::json& object);

}  // namespace flamefleet::api
