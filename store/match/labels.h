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

}  // namespace flamefleet::store
