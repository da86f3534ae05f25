// SPDX-License-Identifier: Apache-2.0
#include "operator/api/namespace.h"

#include "operator/api/json_reader.h"

namespace flamefleet::api {

Result<Namespace> DecodeNamespace(const nlohmann::json& object) {
  const ObjectReader root(object, "Namespace");
  Namespace result;
  ReadMeta(root, result.meta);
  result.meta.resource_version.clear();
  root.Object("metadata", [&](const ObjectReader& in) { in.Map("labels", result.labels); });
  if (!root.status().ok()) return root.status();
  return result;
}

}  // namespace flamefleet::api
