// SPDX-License-Identifier: Apache-2.0
// The forms in which a plan and what is invalid are printed. Thread: any; pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "operator/render/manifests.h"
#include "operator/render/offline_plan.h"

namespace flamefleet::render {

// For people: a line per object, per pod what is collected, and why not what is not.
std::string PlanText(const OfflinePlan& plan);
// For programs: {"objects": [...], "pods": [...], "invalid": [...]}.
nlohmann::json PlanJson(const OfflinePlan& plan, const std::vector<Finding>& findings);
// Block style; ReadYaml reads the same value back.
std::string ToYaml(const nlohmann::json& value);
// "apps.yaml, document 2: Deployment shop/payments: spec.template: want object"
std::string FindingText(const Finding& finding);

}  // namespace flamefleet::render
