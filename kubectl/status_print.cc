// SPDX-License-Identifier: Apache-2.0
#include "kubectl/status_print.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/reasons.h"
#include "kubectl/table.h"
#include "operator/api/status_json.h"
#include "operator/render/print.h"

namespace flamefleet::kubectl {
namespace {

using nlohmann::json;

template <typename Values>
std::string Join(const Values& values) {
  std::string text;
  for (const auto& value : values)
    text += (text.empty() ? "" : ",") + std::string(value);
  return text;
}

std::string ProfilesOf(const plan::PodPlan& plan) {
  std::vector<std::string_view> types;  // collections are by type
  for (const plan::Collection& collection : plan.collections) {
    const std::string_view type = ProfileTypeName(collection.type);
    if (types.empty() || types.back() != type) types.push_back(type);
  }
  return Join(types);
}

std::string BackendsOf(const plan::PodPlan& plan) {
  std::set<std::string> names;
  for (const plan::Collection& collection : plan.collections)
    names.insert(collection.backend);
  return Join(names);
}

std::string AskersOf(const plan::PodPlan& plan) {
  plan::Askers askers;
  for (const plan::Collection& collection : plan.collections)
    askers.Add(collection.askers);
  for (const plan::Refusal& refusal : plan.refusals)
    askers.Add(refusal.askers);
  std::vector<std::string> names;
  for (const std::string& target : askers.targets)
    names.push_back("profilingtarget/" + target);
  if (askers.annotations) names.emplace_back("annotations");
  if (askers.pool) names.emplace_back("scope");
  return Join(names);
}

// "memory: what the agent said"
std::string MessageOf(const PodStatus& pod) {
  return pod.profile.empty() ? pod.message : pod.profile + ": " + pod.message;
}

std::string_view MeaningOf(const std::string& reason) {
  const auto found = std::ranges::find(reasons::kAll, reason, &Reason::name);
  return found == reasons::kAll.end() ? std::string_view() : found->meaning;
}

void AddSection(const std::string& title, const std::vector<std::string>& lines,
                std::string& text) {
  if (lines.empty()) return;
  text += title + ":\n";
  for (const std::string& line : lines)
    text += "  " + OneLine(line) + "\n";
}

}  // namespace

std::string StatusTable(const std::vector<PodStatus>& pods, const TableForm& form) {
  std::vector<std::string> header;
  if (form.namespaces) header.emplace_back("NAMESPACE");
  header.insert(header.end(), {"NAME", "STATE", "PROFILES"});
  if (form.wide) header.insert(header.end(), {"NODE", "POOL", "BACKEND", "ASKED-BY"});
  header.insert(header.end(), {"REASON", "MESSAGE"});
  Table table(header);
  for (const PodStatus& pod : pods) {
    std::vector<std::string> row;
    if (form.namespaces) row.push_back(pod.pod->meta.ns);
    row.insert(row.end(),
               {pod.pod->meta.name, std::string(StateName(pod.state)), ProfilesOf(pod.plan)});
    if (form.wide) {
      row.insert(row.end(), {pod.pod->node, pod.pool, BackendsOf(pod.plan), AskersOf(pod.plan)});
    }
    row.insert(row.end(), {pod.reason, MessageOf(pod)});
    table.Add(std::move(row));
  }
  return table.Text();
}

std::string StatusText(const PodStatus& pod, const std::vector<std::string>& events) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty())
      text += name + ":" + std::string(12 - name.size(), ' ') + OneLine(value) + "\n";
  };
  add("Pod", pod.pod->meta.ns + "/" + pod.pod->meta.name);
  if (!pod.pod->workload_kind.empty())
    add("Workload", pod.pod->workload_kind + " " + pod.pod->workload_name);
  add("Node", pod.pod->node + (pod.pool.empty() ? "" : "  (AgentPool " + pod.pool + ")"));
  add("State", std::string(StateName(pod.state)));
  add("Reason", pod.reason);
  add("Message", MessageOf(pod));
  add("Meaning", std::string(MeaningOf(pod.reason)));
  if (pod.since_ns != 0) add("Since", api::FormatSeconds(pod.since_ns));
  add("On node", pod.node_problem);
  std::vector<std::string> profiles;
  const bool ends = pod.state == State::kStopped || pod.state == State::kEnded;
  if (!ends) {
    for (const plan::Collection& collection : pod.plan.collections)
      profiles.push_back(render::CollectionText(collection));
  }
  for (const plan::Refusal& refusal : pod.plan.refusals)
    profiles.push_back(render::RefusalText(refusal));
  AddSection("Profiles", profiles, text);
  std::vector<std::string> warnings;
  for (const plan::Problem& warning : pod.plan.warnings)
    warnings.push_back(render::ProblemText(warning));
  AddSection("Warnings", warnings, text);
  AddSection("Events", events, text);
  return text;
}

json StatusJson(const std::vector<PodStatus>& pods, const std::vector<std::string>& events,
                const std::vector<std::string>& notes) {
  json out = {{"pods", json::array()}, {"notes", notes}};
  for (const PodStatus& pod : pods) {
    json entry = {{"namespace", pod.pod->meta.ns}, {"name", pod.pod->meta.name},
                  {"node", pod.pod->node},         {"agentPool", pod.pool},
                  {"state", StateName(pod.state)}, {"reason", pod.reason},
                  {"message", pod.message},        {"collected", json::array()},
                  {"notCollected", json::array()}, {"warnings", json::array()}};
    if (!pod.profile.empty()) entry["profile"] = pod.profile;
    if (pod.since_ns != 0) entry["since"] = api::FormatSeconds(pod.since_ns);
    if (!pod.node_problem.empty()) entry["nodeProblem"] = pod.node_problem;
    if (!pod.pod->workload_kind.empty())
      entry["workload"] = {{"kind", pod.pod->workload_kind}, {"name", pod.pod->workload_name}};
    for (const plan::Collection& collection : pod.plan.collections)
      entry["collected"].push_back(render::CollectionJson(collection));
    for (const plan::Refusal& refusal : pod.plan.refusals)
      entry["notCollected"].push_back(render::RefusalJson(refusal));
    for (const plan::Problem& warning : pod.plan.warnings)
      entry["warnings"].push_back(render::ProblemJson(warning));
    if (pods.size() == 1 && !events.empty()) entry["events"] = events;
    out["pods"].push_back(std::move(entry));
  }
  return out;
}

}  // namespace flamefleet::kubectl
