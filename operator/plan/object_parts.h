// SPDX-License-Identifier: Apache-2.0
// Parts that our objects have in common. Only for the .cc files of this folder.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "operator/api/kinds.h"
#include "operator/api/profiling_backend.h"

namespace flamefleet::plan {

// Labels that a selector may use: they never change during the life of an object.
inline nlohmann::json SelectorLabels(std::string_view component, std::string_view instance_label,
                                     const std::string& instance) {
  return {{"app.kubernetes.io/name", "flamefleet"},
          {"app.kubernetes.io/component", component},
          {std::string(instance_label), instance}};
}

inline nlohmann::json WithInfoLabels(nlohmann::json labels) {
  labels["app.kubernetes.io/part-of"] = "flamefleet";
  labels["app.kubernetes.io/managed-by"] = "flamefleet-operator";
  return labels;
}

inline nlohmann::json OwnedMetadata(const std::string& name, const std::string& ns,
                                    nlohmann::json labels, const api::Kind& kind,
                                    const api::ObjectMeta& owner) {
  return {{"name", name},
          {"namespace", ns},
          {"labels", WithInfoLabels(std::move(labels))},
          {"ownerReferences",
           {{{"apiVersion", api::kApiVersion},
             {"kind", kind.name},
             {"name", owner.name},
             {"uid", owner.uid},
             {"controller", true},
             {"blockOwnerDeletion", true}}}}};
}

// A probe of the program's HTTP port.
inline nlohmann::json HttpProbe(std::string_view path, int period_seconds, int failures) {
  return {{"httpGet", {{"path", path}, {"port", "http"}}},
          {"periodSeconds", period_seconds},
          {"failureThreshold", failures}};
}

inline nlohmann::json ResourcesJson(const api::Resources& resources) {
  nlohmann::json out = nlohmann::json::object();
  if (!resources.requests.empty()) out["requests"] = resources.requests;
  if (!resources.limits.empty()) out["limits"] = resources.limits;
  return out;
}

}  // namespace flamefleet::plan
