// SPDX-License-Identifier: Apache-2.0
// "process_cpu:cpu:nanoseconds:cpu:nanoseconds": the whole name of a profile type, as selectors
// take it.
//
// Thread: any.
#pragma once

#include <string>

#include "store/match/selector.h"
#include "store/query/query.h"

namespace flamefleet::store {

inline std::string FullType(const std::string& name, const SampleType& type) {
  return name + ":" + type.type + ":" + type.unit + ":" + type.period_type + ":" + type.period_unit;
}

inline std::string FullType(const MergedProfile& merged, size_t value_index) {
  const pprof::Profile& profile = merged.profile;
  const auto text = [&](uint32_t index) { return std::string(profile.strings.Get(index)); };
  return FullType(merged.name, {.type = text(profile.sample_types[value_index].type),
                                .unit = text(profile.sample_types[value_index].unit),
                                .period_type = text(profile.period_type.type),
                                .period_unit = text(profile.period_type.unit)});
}

}  // namespace flamefleet::store
