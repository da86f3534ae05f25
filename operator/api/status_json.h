// SPDX-License-Identifier: Apache-2.0
// The parts that the status of all three kinds share, to and from JSON. Only for the .cc files of
// this folder.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "operator/api/json_reader.h"
#include "operator/api/kinds.h"

namespace flamefleet::api {

// Whole seconds, as metav1.Time is written: "2026-11-29T17:05:00Z".
std::string FormatSeconds(int64_t wall_ns);

void ReadConditions(const ObjectReader& status, std::vector<Condition>& conditions);
void ReadPodCounts(const ObjectReader& status, const char* key, PodCounts& counts);
void ReadFailingPods(const ObjectReader& status, std::vector<FailingPod>& pods);
void ReadWarnings(const ObjectReader& status, std::vector<PodWarning>& warnings);

nlohmann::json EncodeConditions(const std::vector<Condition>& conditions);
nlohmann::json EncodePodCounts(const PodCounts& counts);
nlohmann::json EncodeFailingPods(const std::vector<FailingPod>& pods);
nlohmann::json EncodeWarnings(const std::vector<PodWarning>& warnings);

}  // namespace flamefleet::api
