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
// For programs: {"objects": [...], "pods": [...], "targetsWithoutPods": [...], "invalid": [...]}.
nlohmann::json PlanJson(const OfflinePlan& plan, const std::vector<Finding>& findings);
// Block style; ReadYaml reads the same value back.
std::string ToYaml(const nlohmann::json& value);
// "cpu: eBPF of container app, to store as service shop  [ProfilingTarget shop]"
std::string CollectionText(const plan::Collection& collection);
// "memory: not collected: PortRequired: ...  [annotations]"
std::string RefusalText(const plan::Refusal& refusal);
nlohmann::json CollectionJson(const plan::Collection& collection);
nlohmann::json RefusalJson(const plan::Refusal& refusal);
nlohmann::json ProblemJson(const plan::Problem& problem);
std::string ProblemText(const plan::Problem& problem);
// "apps.yaml, document 2: Deployment shop/payments: spec.template: want object"
std::string FindingText(const Finding& finding);

}  // namespace flamefleet::render
