// SPDX-License-Identifier: Apache-2.0
// Render: the command `flamefleet-operator render`: manifests in, what the operator would make of
// them out. For the CI of repositories that hold a cluster's objects.
//
// Thread: main.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "operator/plan/objects.h"

namespace flamefleet::render {

enum class OutputForm { kText, kYaml, kJson };
// "text", "yaml" or "json"
std::optional<OutputForm> ParseOutputForm(const std::string& name);

struct RenderOptions {
  std::vector<std::string> paths;  // files, folders, "-"
  OutputForm form = OutputForm::kText;
  plan::ObjectSettings settings;
  bool strict = false;  // a target that selects no pod is an error
};

// Prints the plan to `out` and a line for each thing that is invalid to `errors`. True when nothing
// is, nor an error by `strict`.
bool Render(const RenderOptions& options, std::ostream& out, std::ostream& errors);

}  // namespace flamefleet::render
