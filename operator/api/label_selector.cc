// SPDX-License-Identifier: Apache-2.0
#include "operator/api/label_selector.h"

#include <algorithm>

#include "operator/api/json_reader.h"

namespace flamefleet::api {

bool LabelSelector::Matches(const StringMap& labels) const {
  using Operator = LabelRequirement::Operator;
  for (const auto& [key, value] : match_labels) {
    const auto found = labels.find(key);
    if (found == labels.end() || found->second != value) return false;
  }
  for (const LabelRequirement& requirement : match_expressions) {
    const auto found = labels.find(requirement.key);
    const bool exists = found != labels.end();
    const bool listed =
        exists && std::ranges::find(requirement.values, found->second) != requirement.values.end();
    const bool holds = requirement.op == Operator::kIn       ? listed
                       : requirement.op == Operator::kNotIn  ? !listed
                       : requirement.op == Operator::kExists ? exists
                                                             : !exists;
    if (!holds) return false;
  }
  return true;
}

void ReadSelector(const ObjectReader& in, LabelSelector& selector) {
  using Operator = LabelRequirement::Operator;
  in.Map("matchLabels", selector.match_labels);
  in.Objects("matchExpressions", [&](const ObjectReader& expression) {
    LabelRequirement& requirement = selector.match_expressions.emplace_back();
    expression.String("key", requirement.key);
    expression.Enumeration<Operator>("operator",
                                     {{"In", Operator::kIn},
                                      {"NotIn", Operator::kNotIn},
                                      {"Exists", Operator::kExists},
                                      {"DoesNotExist", Operator::kDoesNotExist}},
                                     requirement.op);
    expression.Strings("values", requirement.values);
  });
}

}  // namespace flamefleet::api
