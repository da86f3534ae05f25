// SPDX-License-Identifier: Apache-2.0
// ObjectReader: reads typed fields out of a JSON object and remembers the first thing that is
// wrong, with its path. Only for the .cc files of this folder: it drags in all of nlohmann/json.
//
// Thread:  one. Lifetime: the document and the parent reader outlive a reader.
// Errors:  absent and null fields leave the output alone (as the API server reads them); a wrong
// type is remembered and
//          every later read does nothing, so a decoder is a flat list of reads and one look at
//          status().
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/size.h"
#include "base/status.h"
#include "operator/api/field.h"
#include "operator/api/kinds.h"

namespace flamefleet::api {

class ObjectReader {
 public:
  using Json = nlohmann::json;

  // `document` is the whole object; `what` begins the messages ("Pod").
  ObjectReader(const Json& document, std::string_view what)
      : json_(&document), step_(what), error_(&own_error_) {
    if (!document.is_object()) Fail({}, "object");
  }
  ObjectReader(const ObjectReader&) = delete;
  ObjectReader& operator=(const ObjectReader&) = delete;

  const Status& status() const { return *error_; }

  void String(const char* key, std::string& out) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(key, "string");
    out = value->get_ref<const std::string&>();
  }

  void Bool(const char* key, bool& out) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Fail(key, "boolean");
    out = value->get<bool>();
  }

  template <typename Int>
  void Integer(const char* key, Int& out) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_number_integer()) return Fail(key, "integer");
    if (value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX)
      return Fail(key, "integer in range");
    const int64_t number = value->get<int64_t>();
    if (number < std::numeric_limits<Int>::min() || number > std::numeric_limits<Int>::max()) {
      return Fail(key, "integer in range");
    }
    out = static_cast<Int>(number);
  }

  // A duration such as "15s", as nanoseconds.
  void Duration(const char* key, std::optional<int64_t>& out) const {
    std::optional<std::string> text;
    OptionalString(key, text);
    if (!text) return;
    const Result<int64_t> parsed = ParseDuration(*text);
    if (!parsed.ok()) return Fail(key, "duration such as 15s");
    out = *parsed;
  }

  // A size such as "10Gi", in bytes.
  void Size(const char* key, int64_t& out) const {
    std::optional<std::string> text;
    OptionalString(key, text);
    if (!text) return;
    const Result<int64_t> parsed = ParseSize(*text);
    if (!parsed.ok()) return Fail(key, "size such as 10Gi");
    out = *parsed;
  }

  // RFC 3339 text, as wall nanoseconds.
  void Time(const char* key, int64_t& out) const {
    std::optional<std::string> text;
    OptionalString(key, text);
    if (!text) return;
    const Result<int64_t> parsed = ParseRfc3339(*text);
    if (!parsed.ok()) return Fail(key, "RFC 3339 time");
    out = *parsed;
  }

  void OptionalString(const char* key, std::optional<std::string>& out) const {
    std::string text;
    if (Find(key) == nullptr) return;
    String(key, text);
    if (error_->ok()) out = std::move(text);
  }

  // One of `values`; the index of the one found goes to `set`.
  template <typename Enum>
  void Enumeration(const char* key, std::initializer_list<std::pair<std::string_view, Enum>> values,
                   Enum& out) const {
    Enumeration(key, std::span(values.begin(), values.size()), out);
  }
  template <typename Enum>
  void Enumeration(const char* key, std::span<const std::pair<std::string_view, Enum>> values,
                   Enum& out) const {
    std::optional<std::string> text;
    OptionalString(key, text);
    if (!text) return;
    std::string allowed;
    for (const auto& [name, value] : values) {
      if (name == *text) {
        out = value;
        return;
      }
      allowed.append(allowed.empty() ? "" : ", ").append(name);
    }
    Fail(key, "one of " + allowed);
  }

  void Map(const char* key, StringMap& out) const {
    Map(key, out, [](const std::string&) { return true; });
  }
  // Only the keys that `wanted` accepts.
  template <typename Predicate>
  void Map(const char* key, StringMap& out, Predicate wanted) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_object()) return Fail(key, "map of strings");
    for (auto entry = value->begin(); entry != value->end(); ++entry) {
      const std::string& name = entry.key();
      const Json& text = entry.value();
      if (!wanted(name)) continue;
      if (!text.is_string()) {
        return Fail(std::string(key) + "[" + name + "]",
                    std::string("string, got ") + text.type_name() + ": put it in quotes");
      }
      out.emplace(name, text.get_ref<const std::string&>());
    }
  }

  // Kubernetes quantities may be numbers: kept as text.
  void Quantities(const char* key, StringMap& out) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_object()) return Fail(key, "map of quantities");
    for (const auto& [name, entry] : value->items()) {
      if (!entry.is_string() && !entry.is_number()) return Fail(key, "map of quantities");
      out.emplace(name, entry.is_string() ? entry.get<std::string>() : entry.dump());
    }
  }

  void Strings(const char* key, std::vector<std::string>& out) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(key, "list of strings");
    for (const Json& entry : *value) {
      if (!entry.is_string()) return Fail(key, "list of strings");
      out.push_back(entry.get_ref<const std::string&>());
    }
  }

  // Calls read(reader) when the object is there.
  template <typename Read>
  void Object(const char* key, Read read) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_object()) return Fail(key, "object");
    const ObjectReader child(*value, *this, key, -1);
    read(child);
  }

  // Calls read(reader) for each object of the list.
  template <typename Read>
  void Objects(const char* key, Read read) const {
    const Json* value = Find(key);
    if (value == nullptr) return;
    if (!value->is_array()) return Fail(key, "list");
    for (size_t i = 0; i < value->size(); ++i) {
      if (!(*value)[i].is_object()) return Fail(key, "list of objects");
      const ObjectReader child((*value)[i], *this, key, static_cast<int64_t>(i));
      read(child);
    }
  }

  // What MessageReader has too, so that one decoder reads both.
  void String(Field field, std::string& out) const { String(field.name, out); }
  void Bool(Field field, bool& out) const { Bool(field.name, out); }
  template <typename Int>
  void Integer(Field field, Int& out) const {
    Integer(field.name, out);
  }
  void Time(Field field, int64_t& out) const { Time(field.name, out); }
  template <typename Predicate>
  void Map(Field field, StringMap& out, Predicate wanted) const {
    Map(field.name, out, wanted);
  }
  template <typename Read>
  void Object(Field field, Read read) const {
    Object(field.name, read);
  }
  template <typename Read>
  void Objects(Field field, Read read) const {
    Objects(field.name, read);
  }
  bool Has(Field field) const { return Find(field.name) != nullptr; }

  // The value itself, for what no other function reads; nullptr when absent, null, or after an
  // error.
  const Json* Find(const char* key) const {
    if (!error_->ok() || !json_->is_object()) return nullptr;
    const auto found = json_->find(key);
    return found == json_->end() || found->is_null() ? nullptr : &*found;
  }

  void Fail(std::string_view key, const std::string& want) const {
    if (!error_->ok()) return;
    std::string path = Path();
    if (!key.empty()) path.append(1, '.').append(key);
    *error_ = InvalidArgumentError("decode " + path + ": want " + want);
  }

 private:
  ObjectReader(const Json& object, const ObjectReader& parent, std::string_view step, int64_t index)
      : json_(&object), parent_(&parent), step_(step), index_(index), error_(parent.error_) {}

  std::string Path() const {
    std::string path = parent_ == nullptr ? std::string() : parent_->Path() + ".";
    path.append(step_);
    if (index_ >= 0) path.append("[").append(std::to_string(index_)).append("]");
    return path;
  }

  const Json* json_;
  const ObjectReader* parent_ = nullptr;
  std::string_view step_;
  int64_t index_ = -1;
  Status own_error_;
  Status* error_;
};

// `object` is an ObjectReader or a MessageReader.
template <typename Reader>
void ReadMeta(const Reader& object, ObjectMeta& meta) {
  object.Object({"metadata", 1}, [&](const auto& in) {
    in.String({"namespace", 3}, meta.ns);
    in.String({"name", 1}, meta.name);
    in.String({"uid", 5}, meta.uid);
    in.String({"resourceVersion", 6}, meta.resource_version);
    in.Integer({"generation", 7}, meta.generation);
    in.Time({"creationTimestamp", 8}, meta.creation_ns);
    meta.deleting = in.Has({"deletionTimestamp", 9});
  });
}

}  // namespace flamefleet::api
