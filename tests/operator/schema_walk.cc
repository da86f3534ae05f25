// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/schema_walk.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "operator/render/schema.h"
#include "operator/render/yaml_reader.h"

namespace flamefleet {
namespace {

using nlohmann::json;

// More items than this say nothing more.
constexpr size_t kMaxItems = 2;

// Texts of every form that a field of ours has; those that the cluster of the test knows are among
// them.
constexpr std::array<std::string_view, 24> kTexts = {
    "app",
    "web",
    "side",
    "shop",
    "main",
    "other",
    "pprof-a",
    "10Mi",
    "64Mi",
    "128Mi",
    "1Gi",
    "5s",
    "20s",
    "2h",
    "72h",
    "100m",
    "30%",
    "/path",
    "/debug/pprof/",
    "http://a:4040",
    "https://b/x",
    "A.b",
    "",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"};

bool IsOptional(const json& schema, const std::string& field) {
  const json required = schema.value("required", json::array());
  return std::ranges::find(required, json(field)) == required.end();
}

// Of items that may be there once only, the first stays.
void RemoveDuplicates(const json& schema, json& list) {
  if (schema.value("x-kubernetes-list-type", "atomic") == "atomic") return;
  std::set<json> seen;
  json unique = json::array();
  for (const json& item : list) {
    json key = item;
    if (schema.contains("x-kubernetes-list-map-keys")) {
      key = json::array();
      for (const json& name : schema["x-kubernetes-list-map-keys"])
        key.push_back(item.value(name.get<std::string>(), json()));
    }
    if (seen.insert(key).second) unique.push_back(item);
  }
  list = std::move(unique);
}

}  // namespace

SchemaWalk::SchemaWalk(uint32_t seed) : random_(seed) {
  for (const std::string_view text : render::CrdTexts()) {
    render::ReadYaml(std::string(text), [&](int /*number*/, const Result<json>& crd) {
      FF_CHECK(crd.ok());
      const json& spec = crd->at("spec");
      schemas_[spec.at("names").at("kind")] =
          spec.at("/versions/0/schema/openAPIV3Schema/properties/spec"_json_pointer);
    });
  }
}

json SchemaWalk::Step(const std::string& kind, const json& spec) {
  json next = spec;
  // A choice may come to what was there.
  for (int tries = 0; tries < 20 && next == spec; ++tries)
    Change(schemas_.at(kind), next);
  return next;
}

void SchemaWalk::Change(const json& schema, json& value) {
  if (value.is_object()) return ChangeObject(schema, value);
  if (value.is_array()) return ChangeList(schema, value);
  value = Draw(schema);
}

void SchemaWalk::ChangeObject(const json& schema, json& object) {
  std::string name;
  json of_field;
  bool may_go = true;
  if (schema.contains("properties")) {
    const json& properties = schema["properties"];
    const auto field = std::next(properties.begin(), static_cast<long>(Pick(properties.size())));
    name = field.key();
    of_field = field.value();
    may_go = IsOptional(schema, name);
  } else {
    name = DrawName();
    of_field = schema.at("additionalProperties");
  }
  if (!object.contains(name)) {
    object[name] = Draw(of_field);
  } else if (may_go && Pick(4) == 0) {
    object.erase(name);
  } else {
    Change(of_field, object[name]);
  }
}

void SchemaWalk::ChangeList(const json& schema, json& list) {
  const size_t what = list.empty() ? 0 : Pick(4);
  if (what == 0 && list.size() < schema.value("maxItems", kMaxItems)) {
    list.push_back(Draw(schema.at("items")));
  } else if (what == 1 && list.size() > schema.value("minItems", size_t{0})) {
    list.erase(Pick(list.size()));
  } else if (!list.empty()) {
    Change(schema.at("items"), list[Pick(list.size())]);
  }
  RemoveDuplicates(schema, list);
}

json SchemaWalk::Draw(const json& schema) {
  if (schema.contains("enum")) return schema["enum"][Pick(schema["enum"].size())];
  if (schema.value("x-kubernetes-int-or-string", false))
    return Pick(2) == 0 ? json(1 + Pick(3)) : DrawText(schema);
  const std::string type = schema.at("type");
  if (type == "boolean") return Pick(2) == 0;
  if (type == "integer") {
    const auto least = schema.value("minimum", int64_t{0});
    const int64_t room = std::min<int64_t>(schema.value("maximum", int64_t{1000}) - least, 1000);
    return least + static_cast<int64_t>(Pick(static_cast<size_t>(room) + 1));
  }
  if (type == "string") return DrawText(schema);
  if (type == "array") {
    json list = json::array();
    const size_t most = std::min(schema.value("maxItems", kMaxItems), kMaxItems);
    const size_t size = std::max(schema.value("minItems", size_t{0}), Pick(most + 1));
    while (list.size() < size)
      list.push_back(Draw(schema.at("items")));
    RemoveDuplicates(schema, list);
    return list;
  }
  json object = json::object();
  if (!schema.contains("properties")) {
    for (size_t left = Pick(kMaxItems + 1); left > 0; --left)
      object[DrawName()] = Draw(schema.at("additionalProperties"));
    return object;
  }
  for (const auto& [name, property] : schema["properties"].items()) {
    if (!IsOptional(schema, name) || Pick(3) == 0) object[name] = Draw(property);
  }
  return object;
}

json SchemaWalk::DrawText(const json& schema) {
  std::vector<std::string_view> fit;
  for (const std::string_view text : kTexts) {
    if (text.size() < schema.value("minLength", size_t{0})) continue;
    if (text.size() > schema.value("maxLength", size_t{1000})) continue;
    if (schema.contains("pattern") &&
        !RE2::PartialMatch(std::string(text), schema["pattern"].get<std::string>()))
      continue;
    fit.push_back(text);
  }
  if (fit.empty()) fprintf(stderr, "no text for %s\n", schema.dump().c_str());
  FF_CHECK(!fit.empty());
  return fit[Pick(fit.size())];
}

std::string SchemaWalk::DrawName() {
  constexpr std::array<const char*, 4> kNames = {"app", "team", "version", "a.example/b"};
  return kNames[Pick(kNames.size())];
}

}  // namespace flamefleet
