// SPDX-License-Identifier: Apache-2.0
#include "operator/render/render.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "operator/render/manifests.h"
#include "operator/render/offline_fleet.h"
#include "operator/render/offline_plan.h"
#include "operator/render/print.h"

namespace flamefleet::render {

std::optional<OutputForm> ParseOutputForm(const std::string& name) {
  if (name == "text") return OutputForm::kText;
  if (name == "yaml") return OutputForm::kYaml;
  if (name == "json") return OutputForm::kJson;
  return std::nullopt;
}

bool Render(const RenderOptions& options, std::ostream& out, std::ostream& errors) {
  Manifests manifests = ReadManifests(options.paths);
  const OfflineFleet fleet = DecodeManifests(manifests.objects, Schemas(), manifests.findings);
  const OfflinePlan plan = PlanOffline(fleet, options.settings);
  for (const Finding& finding : manifests.findings)
    errors << FindingText(finding) << "\n";
  switch (options.form) {
    case OutputForm::kText:
      out << PlanText(plan);
      break;
    case OutputForm::kYaml:
      out << ToYaml(PlanJson(plan, manifests.findings));
      break;
    case OutputForm::kJson:
      out << PlanJson(plan, manifests.findings).dump(2) << "\n";
      break;
  }
  return manifests.findings.empty() && (!options.strict || plan.without_pods.empty());
}

}  // namespace flamefleet::render
