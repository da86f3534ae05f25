// SPDX-License-Identifier: Apache-2.0
// SchemaWalk: objects of our kinds, changed by chance where the schema of crds/ allows a change.
// What it makes has the types and bounds of the schema; whether the CEL rules take it, the API
// server says.
//
// Thread: one. Errors: a field for whose pattern nothing is known fails the test program: give
// Texts() a text for it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace flamefleet {

class SchemaWalk {
 public:
  explicit SchemaWalk(uint32_t seed);

  // `spec` of this kind with one field set, changed, added or taken away.
  nlohmann::json Step(const std::string& kind, const nlohmann::json& spec);
  // A number below `bound`.
  size_t Pick(size_t bound) { return bound == 0 ? 0 : random_() % bound; }

 private:
  using Json = nlohmann::json;

  void Change(const Json& schema, Json& value);
  void ChangeObject(const Json& schema, Json& object);
  void ChangeList(const Json& schema, Json& list);
  Json Draw(const Json& schema);
  Json DrawText(const Json& schema);
  // A name for an entry of a map.
  std::string DrawName();

  std::minstd_rand random_;
  std::map<std::string, Json> schemas_;  // of specs, by kind
};

}  // namespace flamefleet
