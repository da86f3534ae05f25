// SPDX-License-Identifier: Apache-2.0
// Reading messages of OTLP field by field. Private to store/ingest. Thread: any; pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/wire_fields.h"

namespace flamefleet::store::otlp {

inline constexpr const char* kFormat = "OTLP";

inline Status Bad(const std::string& what) {
  return InvalidArgumentError(std::string(kFormat) + ": " + what);
}

inline Status TooMany(const std::string& what, size_t limit) {
  return ResourceExhaustedError("OTLP: more than " + std::to_string(limit) + " " + what);
}

// Calls `handle` for each field of `message`; one that it does not know it passes over.
template <typename Handle>
Status ForEachField(std::string_view message, const char* what, const Handle& handle) {
  return flamefleet::ForEachField(kFormat, message, what, handle);
}

// Calls `handle` with each message that is field `number` of `message`.
template <typename Handle>
Status ForEachMessage(std::string_view message, int number, const char* what,
                      const Handle& handle) {
  return ForEachField(message, what, [&](const WireField& field) {
    if (field.number != static_cast<uint32_t>(number)) return OkStatus();
    if (field.type != WireType::kBytes) return Bad(std::string(what) + " with another wire type");
    return Status(handle(field.bytes));
  });
}

template <typename T>
Status Number(const WireField& field, T* out) {
  if (field.type != WireType::kVarint) return Bad("a number with another wire type");
  *out = static_cast<T>(field.varint);
  return OkStatus();
}

// The one field of a message that has one of several; false when there is none.
inline Result<bool> OnlyField(std::string_view message, const char* what, WireField* field) {
  WireReader reader(message);
  const bool found = reader.Next(field);
  WireField another;
  if (reader.Next(&another) || reader.damaged()) return Bad(std::string("damaged ") + what);
  return found;
}

// An index into a table of `size` elements.
inline Status Index(uint64_t index, size_t size, const char* table, uint32_t* out) {
  if (index >= size) {
    return Bad("index " + std::to_string(static_cast<int64_t>(index)) + " into " +
               std::to_string(size) + " " + table);
  }
  *out = static_cast<uint32_t>(index);
  return OkStatus();
}

inline Status Index(const WireField& field, size_t size, const char* table, uint32_t* out) {
  if (field.type != WireType::kVarint) return Bad("an index with another wire type");
  return Index(field.varint, size, table, out);
}

// A repeated number, packed or not: `add` is called for each.
template <typename Add>
Status ForEachNumber(const WireField& field, const Add& add) {
  return flamefleet::ForEachNumber(kFormat, field, add);
}

}  // namespace flamefleet::store::otlp
