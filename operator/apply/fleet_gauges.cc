// SPDX-License-Identifier: Apache-2.0
#include "operator/apply/fleet_gauges.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace flamefleet {
namespace {

using nlohmann::json;

constexpr std::array kKinds = {"AgentPool", "ProfilingBackend", "ProfilingTarget"};
constexpr std::array kReady = {"True", "False", "Unknown"};
constexpr std::array kStates = {"profiled", "failing", "waiting", "idle"};
// Where kinds count pods: of a target, and of those that opt in by annotations.
constexpr std::array kCounts = {"pods", "annotatedPods"};

// Index in kReady; Unknown when nothing is said.
size_t ReadyOf(const json& status) {
  for (const json& condition : status.value("conditions", json::array())) {
    if (condition.value("type", "") != "Ready") continue;
    const auto found = std::ranges::find(kReady, condition.value("status", ""));
    if (found != kReady.end()) return static_cast<size_t>(found - kReady.begin());
  }
  return kReady.size() - 1;
}

}  // namespace

void FleetGauges::Total::Add(int64_t by) {
  value += by;
  gauge.Set(static_cast<double>(value));
}

FleetGauges::FleetGauges(Metrics& metrics) {
  static_assert(kStates.size() == kPodStates);
  for (const char* kind : kKinds) {
    for (const char* ready : kReady) {
      objects_.push_back({metrics.Gauge("flamefleet_operator_objects",
                                        "Objects of our kinds, by their condition Ready.",
                                        {{"kind", kind}, {"ready", ready}})});
    }
  }
  for (const char* state : kStates) {
    pods_.push_back({metrics.Gauge("flamefleet_operator_pods",
                                   "Pods that want profiles, by what becomes of them, as the "
                                   "statuses of ProfilingTargets and AgentPools count them.",
                                   {{"state", state}})});
  }
}

FleetGauges::~FleetGauges() {
  for (const auto& [path, entry] : entries_)
    Count(entry, -1);
}

void FleetGauges::Count(const Entry& entry, int64_t sign) {
  objects_[entry.ready].Add(sign);
  for (size_t i = 0; i < kPodStates; ++i)
    pods_[i].Add(sign * entry.pods[i]);
}

void FleetGauges::Note(std::string_view kind, const std::string& path, const json& status) {
  const auto known = std::ranges::find(kKinds, kind);
  if (known == kKinds.end()) return;
  Forget(path);
  Entry entry;
  entry.ready = static_cast<size_t>(known - kKinds.begin()) * kReady.size() + ReadyOf(status);
  for (const char* counts : kCounts) {
    if (!status.contains(counts)) continue;
    for (size_t i = 0; i < kPodStates; ++i)
      entry.pods[i] += status[counts].value(kStates[i], int64_t{0});
  }
  Count(entry, 1);
  entries_[path] = entry;
}

void FleetGauges::Forget(const std::string& path) {
  const auto found = entries_.find(path);
  if (found == entries_.end()) return;
  Count(found->second, -1);
  entries_.erase(found);
}

}  // namespace flamefleet
