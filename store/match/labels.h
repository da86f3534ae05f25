// SPDX-License-Identifier: Apache-2.0
// Labels: what names a series of profiles. `__name__` is the profile type (process_cpu, memory),
// `service_name` is always there; no value is empty.
#pragma once

#include <map>
#include <string>

namespace flamefleet::store {

using Labels = std::map<std::string, std::string>;

inline constexpr char kProfileName[] = "__name__";
inline constexpr char kServiceName[] = "service_name";

// Empty when there is no such label.
inline std::string ValueOf(const Labels& labels, const std::string& name) {
  const auto label = labels.find(name);
  return label == labels.end() ? "" : label->second;
}

}  // namespace flamefleet::store
