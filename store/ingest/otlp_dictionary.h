// SPDX-License-Identifier: Apache-2.0
// OtlpDictionary: the tables that the profiles of one OTLP request share, checked and flat.
//
// Element 0 of each table is there and empty: no mapping, no function, no stack. Every index is in
// range.
//
// Thread: any; pure: texts point into the messages. Bounds: pprof::DecodeLimits, for each table.
// Errors: kInvalidArgument says what is wrong; kResourceExhausted over a bound.
// Source: proto/otlp/profiles.proto
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/pprof/profile.h"
#include "base/status.h"

namespace flamefleet::store {

struct OtlpDictionary {
  struct Attribute {
    uint32_t key = 0;        // string
    std::string_view value;  // an AnyValue, see ReadOtlpValue
    uint32_t unit = 0;       // string
  };
  struct Stack {
    uint32_t first = 0;  // of stack_locations, leaf first
    uint32_t count = 0;
  };
  std::vector<std::string_view> strings;
  std::vector<Attribute> attributes;
  std::vector<pprof::Function> functions;  // texts are indexes of `strings`, here and below
  std::vector<pprof::Mapping> mappings;
  std::vector<pprof::Location> locations;  // `mapping` 0: none
  std::vector<pprof::Line> lines;
  std::vector<Stack> stacks;
  std::vector<uint32_t> stack_locations;
};

// Of the messages that are the dictionary: one, or several to be read as one.
Result<OtlpDictionary> ReadOtlpDictionary(const std::vector<std::string_view>& messages,
                                          const pprof::DecodeLimits& limits);

// What an attribute has: a text (of a boolean and a fraction too), a number, or neither: a list,
// bytes or nothing. `text` points into the messages.
struct OtlpValue {
  std::optional<std::string_view> text;
  std::optional<int64_t> number;
  std::string made;  // of a fraction
};
// Into `out`.
Status ReadOtlpValue(std::string_view message, const OtlpDictionary& dictionary, OtlpValue* out);

}  // namespace flamefleet::store
