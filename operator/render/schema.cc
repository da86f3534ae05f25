// SPDX-License-Identifier: Apache-2.0
#include "operator/render/schema.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/status.h"
#include "operator/render/yaml_reader.h"

namespace flamefleet::render {
namespace {

using nlohmann::json;

size_t Characters(const std::string& text) {
  // Every byte but those that continue a character.
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

std::string TypeName(const json& value) {
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  return value.type_name();
}

bool HasType(const json& value, const std::string& type) {
  if (type == "number") return value.is_number();
  return TypeName(value) == type;
}

class Checker {
 public:
  explicit Checker(std::vector<SchemaError>& errors) : errors_(errors) {}

  void Check(const json& schema, json& value, const std::string& field) {
    if (!CheckType(schema, value, field)) return;
    CheckEnum(schema, value, field);
    if (value.is_string()) CheckText(schema, value.get_ref<const std::string&>(), field);
    if (value.is_number()) {
      CheckBound(schema, "minimum", value.get<double>(), field);
      CheckBound(schema, "maximum", value.get<double>(), field);
    }
    if (value.is_array()) CheckList(schema, value, field);
    if (value.is_object()) CheckObject(schema, value, field);
  }

 private:
  bool CheckType(const json& schema, const json& value, const std::string& field) {
    std::string want;
    if (schema.value("x-kubernetes-int-or-string", false)) {
      if (value.is_string() || value.is_number_integer()) return true;
      want = "integer or string";
    } else {
      want = schema.value("type", "");
      if (want.empty() || HasType(value, want)) return true;
    }
    const bool quotes_help = want == "string" && value.is_primitive() && !value.is_null();
    Fail(field,
         "want " + want + ", got " + TypeName(value) + (quotes_help ? ": put it in quotes" : ""));
    return false;
  }

  void CheckEnum(const json& schema, const json& value, const std::string& field) {
    const auto allowed = schema.find("enum");
    if (allowed == schema.end() || std::ranges::find(*allowed, value) != allowed->end()) return;
    std::string names;
    for (const json& name : *allowed)
      names += (names.empty() ? "" : ", ") + name.get<std::string>();
    Fail(field, "want one of " + names);
  }

  void CheckText(const json& schema, const std::string& text, const std::string& field) {
    const size_t size = Characters(text);
    if (size < schema.value("minLength", size_t{0}))
      Fail(field, "want at least " + schema["minLength"].dump() + " characters");
    if (schema.contains("maxLength") && size > schema["maxLength"].get<size_t>())
      Fail(field, "want at most " + schema["maxLength"].dump() + " characters");
    const auto pattern = schema.find("pattern");
    if (pattern != schema.end() && !RE2::PartialMatch(text, pattern->get<std::string>()))
      Fail(field, "want text that matches " + pattern->get<std::string>());
  }

  void CheckBound(const json& schema, const char* bound, double value, const std::string& field) {
    const auto limit = schema.find(bound);
    if (limit == schema.end()) return;
    const bool is_minimum = std::string_view(bound) == "minimum";
    const bool holds = is_minimum ? value >= limit->get<double>() : value <= limit->get<double>();
    if (!holds) Fail(field, (is_minimum ? "want at least " : "want at most ") + limit->dump());
  }

  void CheckList(const json& schema, json& list, const std::string& field) {
    if (list.size() < schema.value("minItems", size_t{0}))
      Fail(field, "want at least " + schema["minItems"].dump() + " items");
    if (schema.contains("maxItems") && list.size() > schema["maxItems"].get<size_t>())
      return Fail(field, "want at most " + schema["maxItems"].dump() + " items");
    std::set<json> keys;
    const bool unique = schema.value("x-kubernetes-list-type", "atomic") != "atomic";
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string item = field + "[" + std::to_string(i) + "]";
      Check(schema.at("items"), list[i], item);
      if (unique && !keys.insert(KeyOf(schema, list[i])).second)
        Fail(item, "an item before it is the same: " + KeyOf(schema, list[i]).dump());
    }
  }

  // What makes an item of a set or a map one of a kind.
  static json KeyOf(const json& schema, const json& item) {
    if (schema["x-kubernetes-list-type"] != "map" || !item.is_object()) return item;
    json key;
    for (const json& name : schema["x-kubernetes-list-map-keys"])
      key[name.get<std::string>()] = item.value(name.get<std::string>(), json());
    return key;
  }

  void CheckObject(const json& schema, json& object, const std::string& field) {
    if (schema.contains("maxProperties") && object.size() > schema["maxProperties"].get<size_t>())
      return Fail(field, "want at most " + schema["maxProperties"].dump() + " entries");
    if (object.size() < schema.value("minProperties", size_t{0}))
      return Fail(field, "want at least " + schema["minProperties"].dump() + " entries");
    const auto properties = schema.find("properties");
    const auto additional = schema.find("additionalProperties");
    if (properties == schema.end() && additional == schema.end()) return;  // anything, as metadata
    if (properties != schema.end()) SetDefaults(*properties, object);
    for (const json& name : schema.value("required", json::array())) {
      if (!object.contains(name.get<std::string>()))
        Fail(Join(field, name.get<std::string>()), "is required");
    }
    for (auto& [name, value] : object.items()) {
      if (properties == schema.end()) {
        Check(*additional, value, field + "[" + name + "]");
      } else if (const auto property = properties->find(name); property != properties->end()) {
        Check(*property, value, Join(field, name));
      } else {
        Fail(Join(field, name), "no such field");
      }
    }
  }

  // Null stands for a field that is not set where there is a default.
  static void SetDefaults(const json& properties, json& object) {
    for (const auto& [name, property] : properties.items()) {
      const auto value = property.find("default");
      if (value == property.end()) continue;
      const auto found = object.find(name);
      if (found == object.end() || found->is_null()) object[name] = *value;
    }
  }

  static std::string Join(const std::string& field, const std::string& name) {
    return field.empty() ? name : field + "." + name;
  }

  void Fail(const std::string& field, const std::string& cause) {
    errors_.push_back({field, cause});
  }

  std::vector<SchemaError>& errors_;
};

}  // namespace

Schemas::Schemas() {
  for (const std::string_view text : CrdTexts()) {
    ReadYaml(std::string(text), [&](int /*number*/, Result<json> crd) {
      FF_CHECK(crd.ok());
      json& spec = crd->at("spec");
      json& schema = spec.at("versions").at(0).at("schema").at("openAPIV3Schema");
      schema.at("properties").erase("status");  // nobody but the operator writes it
      schemas_.emplace(spec.at("names").at("kind").get<std::string>(), std::move(schema));
    });
  }
}

std::vector<SchemaError> Schemas::Check(std::string_view kind, json& object) const {
  const auto schema = schemas_.find(kind);
  FF_CHECK(schema != schemas_.end());
  object.erase("status");
  std::vector<SchemaError> errors;
  Checker(errors).Check(schema->second, object, "");
  return errors;
}

}  // namespace flamefleet::render
