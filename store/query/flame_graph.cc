// SPDX-License-Identifier: Apache-2.0
#include "store/query/flame_graph.h"

#include <nlohmann/json.hpp>

#include "base/pprof/call_tree.h"
#include "base/pprof/top.h"
#include "store/query/full_type.h"

namespace flamefleet::store {
namespace {

using pprof::CallTree;

nlohmann::json SideAsJson(const FlameGraphSide& side, size_t value_index) {
  return {{"from", FormatRfc3339(side.range.from_ns)},
          {"until", FormatRfc3339(side.range.until_ns)},
          {"profiles", side.merged.profiles},
          {"series", side.merged.series},
          {"total", pprof::TotalValue(side.merged.profile, value_index)}};
}

template <typename Rows, typename Field>
nlohmann::json Column(const Rows& rows, const Field& field) {
  nlohmann::json column = nlohmann::json::array();
  for (const auto& row : rows)
    column.push_back(row.*field);
  return column;
}

template <typename Rows>
nlohmann::json Values(const Rows& rows, CallTree::Side side) {
  nlohmann::json self = nlohmann::json::array();
  nlohmann::json total = nlohmann::json::array();
  for (const auto& row : rows) {
    self.push_back(row.self[side]);
    total.push_back(row.total[side]);
  }
  return {{"self", std::move(self)}, {"total", std::move(total)}};
}

}  // namespace

Result<std::string> FlameGraphAsJson(const FlameGraphSide& main, const FlameGraphSide* baseline,
                                     size_t max_nodes) {
  const pprof::Profile& profile = main.merged.profile;
  const size_t index = pprof::DefaultSampleType(profile);
  const std::string type = FullType(main.merged, index);
  CallTree tree;
  FF_RETURN_IF_ERROR(tree.Add(profile, index, CallTree::kMain));
  nlohmann::json json = SideAsJson(main, index);
  if (baseline != nullptr) {
    const size_t baseline_index = pprof::DefaultSampleType(baseline->merged.profile);
    if (const std::string other = FullType(baseline->merged, baseline_index); other != type) {
      return FailedPreconditionError("cannot compare " + type + " with " + other +
                                     "; name one type in both queries");
    }
    FF_RETURN_IF_ERROR(tree.Add(baseline->merged.profile, baseline_index, CallTree::kBaseline));
    json["baseline"] = SideAsJson(*baseline, baseline_index);
  }
  const CallTree::Pruned pruned = tree.Prune(max_nodes);
  json["type"] = type;
  json["unit"] = std::string(profile.strings.Get(profile.sample_types[index].unit));
  json["pruned"] = {{"nodes", pruned.nodes}, {"self", pruned.self[CallTree::kMain]}};
  nlohmann::json& functions = json["functions"] = Values(tree.functions(), CallTree::kMain);
  functions["name"] = Column(tree.functions(), &CallTree::Function::name);
  functions["module"] = Column(tree.functions(), &CallTree::Function::module);
  nlohmann::json& nodes = json["nodes"] = Values(tree.nodes(), CallTree::kMain);
  nodes["function"] = Column(tree.nodes(), &CallTree::Node::function);
  nodes["parent"] = Column(tree.nodes(), &CallTree::Node::parent);
  if (baseline != nullptr) {
    json["baseline"]["functions"] = Values(tree.functions(), CallTree::kBaseline);
    json["baseline"]["nodes"] = Values(tree.nodes(), CallTree::kBaseline);
    json["baseline"]["pruned"] = {{"self", pruned.self[CallTree::kBaseline]}};
  }
  return json.dump() + "\n";
}

}  // namespace flamefleet::store
