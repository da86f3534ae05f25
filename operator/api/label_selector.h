// SPDX-License-Identifier: Apache-2.0
// LabelSelector: metav1.LabelSelector, of pods and of namespaces.
#pragma once

#include <string>
#include <vector>

#include "operator/api/kinds.h"

namespace flamefleet::api {

class ObjectReader;

struct LabelRequirement {
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist };
  std::string key;
  Operator op = Operator::kIn;
  std::vector<std::string> values;

  friend bool operator==(const LabelRequirement&, const LabelRequirement&) = default;
};

struct LabelSelector {
  StringMap match_labels;
  std::vector<LabelRequirement> match_expressions;

  // Every pod or namespace is selected.
  bool empty() const { return match_labels.empty() && match_expressions.empty(); }
  // All requirements hold; an empty selector matches everything.
  bool Matches(const StringMap& labels) const;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

void ReadSelector(const ObjectReader& in, LabelSelector& selector);

}  // namespace flamefleet::api
