// SPDX-License-Identifier: Apache-2.0
// The forms in which the status of pods is printed. Thread: any; pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "kubectl/pod_status.h"

namespace flamefleet::kubectl {

struct TableForm {
  bool wide = false;
  bool namespaces = false;  // pods of several
};
// A row per pod.
std::string StatusTable(const std::vector<PodStatus>& pods, const TableForm& form);

// All that is known of one pod, as `kubectl describe` would say it.
std::string StatusText(const PodStatus& pod, const std::vector<std::string>& events);

// {"pods": [...], "notes": [...]}; docs/kubectl.md has the fields. `events`: of the only pod.
nlohmann::json StatusJson(const std::vector<PodStatus>& pods,
                          const std::vector<std::string>& events,
                          const std::vector<std::string>& notes);

}  // namespace flamefleet::kubectl
