// SPDX-License-Identifier: Apache-2.0
// Selector: which profiles a query means, `process_cpu:cpu{service_name="shop",pod=~"web-.*"}`.
//
//   selector = [type] [ "{" [matcher {"," matcher} [","]] "}" ]
//   type     = name [":" sample_type [":" sample_unit [":" period_type ":" period_unit]]]
//   matcher  = label ("=" | "!=" | "=~" | "!~") text
//   label    = letter or "_", then letters, digits, "_" and "."; or a quoted text
//   text     = "..." or '...' with the escapes \\ \" \' \n \r \t, or `...` without
//
// Without a type and without a matcher of __name__ it is process_cpu. A regular expression (RE2)
// must match the whole value; a label that a series does not have is the empty text: both as in
// Prometheus.
//
// Thread: any, once made.
// Bounds: kMaxSelectorBytes, kMaxMatchers, memory of each expression.
// Errors: kInvalidArgument with the position.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/match/labels.h"

namespace re2 {
class RE2;
}

namespace flamefleet::store {

constexpr size_t kMaxSelectorBytes = 8 << 10;
constexpr size_t kMaxMatchers = 64;

struct Matcher {
  enum class Op { kEqual, kNotEqual, kMatch, kNoMatch };
  std::string label;
  Op op = Op::kEqual;
  std::string value;
  std::shared_ptr<const re2::RE2> regex;  // kMatch and kNoMatch

  bool Matches(const Labels& labels) const;
};

// One column of values of a profile: cpu in nanoseconds, sampled every so many nanoseconds of cpu.
struct SampleType {
  std::string type;
  std::string unit;
  std::string period_type;
  std::string period_unit;
  auto operator<=>(const SampleType&) const = default;
};

// The sample type that a type asks for; an empty part means any.
struct SampleTypeChoice : SampleType {
  bool Matches(const SampleType& actual) const;
};

struct Selector {
  std::vector<Matcher> matchers;  // all must match
  SampleTypeChoice sample_type;

  bool Matches(const Labels& labels) const;
};

Result<Selector> ParseSelector(std::string_view text);

}  // namespace flamefleet::store
