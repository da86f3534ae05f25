// SPDX-License-Identifier: Apache-2.0
// Walking the fields of protobuf messages where what is damaged is an error with a text: `format`
// says of what ("pprof"), `what` of which part.
//
// Thread: any; pure. Errors: kInvalidArgument for what is damaged, and those of the callbacks,
// which end the walk.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/wire.h"

namespace flamefleet {

// Calls `handle` for each field of `message`.
template <typename Handle>
Status ForEachField(const char* format, std::string_view message, const char* what,
                    const Handle& handle) {
  WireReader reader(message);
  WireField field;
  while (reader.Next(&field)) {
    FF_RETURN_IF_ERROR(handle(field));
  }
  if (!reader.damaged()) return OkStatus();
  return InvalidArgumentError(std::string(format) + ": damaged " + what);
}

// A repeated number, packed or not: `add` is called for each.
template <typename Add>
Status ForEachNumber(const char* format, const WireField& field, const Add& add) {
  if (field.type == WireType::kVarint) return add(field.varint);
  if (field.type != WireType::kBytes) {
    return InvalidArgumentError(std::string(format) + ": a list of numbers with another wire type");
  }
  WireReader reader(field.bytes);
  uint64_t value = 0;
  while (reader.NextPacked(&value)) {
    FF_RETURN_IF_ERROR(add(value));
  }
  if (!reader.damaged()) return OkStatus();
  return InvalidArgumentError(std::string(format) + ": damaged list of numbers");
}

}  // namespace flamefleet
