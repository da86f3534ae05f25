// SPDX-License-Identifier: Apache-2.0
// ReadYaml: a YAML or JSON text to JSON values, read as kubectl reads it: plain scalars become
// booleans, numbers and null by the rules of YAML 1.1 ("yes" is a boolean), anchors and merge keys
// are resolved, a key that is there twice is an error. A document that cannot be read costs the
// others nothing.
//
// Thread: any. Errors: per document, with line and column of the text.
// Bounds: kMaxDepth levels; kMaxDocumentCost of what a document becomes: without it a few aliases
// of aliases are a terabyte.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <functional>
#include <string>

#include "base/status.h"

namespace flamefleet::render {

inline constexpr size_t kMaxDepth = 100;
// A value costs kValueCost and the bytes of its text.
inline constexpr size_t kMaxDocumentCost = 128 << 20;
inline constexpr size_t kValueCost = 64;

// Calls `take` for each document with something in it, in order. `number` counts all of them from
// 1.
void ReadYaml(const std::string& text,
              const std::function<void(int number, Result<nlohmann::json> document)>& take);

// What a plain (not quoted) scalar is.
nlohmann::json ResolvePlainScalar(const std::string& text);

}  // namespace flamefleet::render
