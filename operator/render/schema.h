// SPDX-License-Identifier: Apache-2.0
// Schemas: what the API server does with an object of our kinds before it stores it: sets the
// defaults of the CustomResourceDefinition and refuses what its schema does not allow. Rules in CEL
// are not evaluated: those only the API server checks.
//
// Thread: any once built. The definitions are those of crds/, built into the program.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace flamefleet::render {

struct SchemaError {
  std::string field;  // "spec.profiles[0].mode"
  std::string cause;
};

class Schemas {
 public:
  Schemas();

  bool Has(std::string_view kind) const { return schemas_.contains(kind); }
  // Everything that is wrong with an object of a kind that Has; it gets the defaults. The status,
  // which nobody but the operator writes, is removed.
  std::vector<SchemaError> Check(std::string_view kind, nlohmann::json& object) const;

 private:
  std::map<std::string, nlohmann::json, std::less<>> schemas_;  // by kind
};

// The texts of crds/*.yaml.
const std::vector<std::string_view>& CrdTexts();

}  // namespace flamefleet::render
