// SPDX-License-Identifier: Apache-2.0
#include "operator/cache/store.h"

#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

std::string Text(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

ObjectKey KeyOfJson(const nlohmann::json& object) {
  if (!object.is_object()) return {};
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return {};
  return {Text(*metadata, "namespace"), Text(*metadata, "name")};
}

}  // namespace flamefleet
