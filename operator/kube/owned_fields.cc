// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/owned_fields.h"

#include <functional>
#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

using nlohmann::json;

const json& Member(const json& object, const char* key) {
  static const json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(key);
  return found == object.end() ? kNone : *found;
}

}  // namespace

OwnedFields ReadOwnedFields(const json& object) {
  OwnedFields owned;
  const json& metadata = Member(object, "metadata");
  if (const json& version = Member(metadata, "resourceVersion"); version.is_string()) {
    owned.version = version.get<std::string>();
  }
  const json& entries = Member(metadata, "managedFields");
  if (!entries.is_array()) return owned;
  for (const json& entry : entries) {
    if (Member(entry, "operation") != "Apply") continue;
    const size_t fields = std::hash<std::string>()(Member(entry, "fieldsV1").dump());
    const json& manager = Member(entry, "manager");
    if (manager == kFieldManager && Member(entry, "subresource").is_null()) owned.spec = fields;
    if (manager == kStatusFieldManager && Member(entry, "subresource") == "status") {
      owned.status = fields;
    }
  }
  return owned;
}

}  // namespace flamefleet
