// SPDX-License-Identifier: Apache-2.0
// The profile types that the fleet collects: the one list, with what they are called.
//
// Thread: any; pure. The spool and the control channel keep them as numbers: never reordered, a new
// one comes last.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace flamefleet {

enum class ProfileType { kCpu, kMemory, kGoroutine, kMutex, kBlock };

struct ProfileTypeNames {
  ProfileType type;
  std::string_view name;    // in specs, annotations of Grafana and status
  std::string_view metric;  // at backends: the label __name__
};

constexpr std::array<ProfileTypeNames, 5> kProfileTypeNames = {{
    {ProfileType::kCpu, "cpu", "process_cpu"},
    {ProfileType::kMemory, "memory", "memory"},
    {ProfileType::kGoroutine, "goroutine", "goroutine"},
    {ProfileType::kMutex, "mutex", "mutex"},
    {ProfileType::kBlock, "block", "block"},
}};

// All, in the order of the enum: a type is an index of the table.
constexpr auto kProfileTypes = [] {
  std::array<ProfileType, kProfileTypeNames.size()> types{};
  for (size_t i = 0; i < types.size(); ++i)
    types[i] = static_cast<ProfileType>(i);
  return types;
}();
static_assert([] {
  for (size_t i = 0; i < kProfileTypes.size(); ++i) {
    if (kProfileTypeNames[i].type != kProfileTypes[i]) return false;
  }
  return true;
}());

constexpr std::string_view ProfileTypeName(ProfileType type) {
  return kProfileTypeNames[static_cast<size_t>(type)].name;
}

constexpr std::string_view MetricName(ProfileType type) {
  return kProfileTypeNames[static_cast<size_t>(type)].metric;
}

constexpr std::optional<ProfileType> ParseProfileType(std::string_view name) {
  for (const ProfileTypeNames& names : kProfileTypeNames) {
    if (names.name == name) return names.type;
  }
  return std::nullopt;
}

}  // namespace flamefleet
