// SPDX-License-Identifier: Apache-2.0
#include "operator/api/agent_pool.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "operator/api/json_reader.h"
#include "operator/api/status_json.h"

namespace flamefleet::api {
namespace {

using nlohmann::json;

void ReadToleration(const ObjectReader& in, Toleration& toleration) {
  in.String("key", toleration.key);
  in.String("operator", toleration.op);
  in.String("value", toleration.value);
  in.String("effect", toleration.effect);
  if (in.Find("tolerationSeconds") != nullptr) {
    in.Integer("tolerationSeconds", toleration.seconds.emplace());
  }
}

void ReadOptIn(const ObjectReader& in, OptIn& opt_in) {
  in.Object("namespaceSelector",
            [&](const ObjectReader& selector) { ReadSelector(selector, opt_in.namespaces); });
  if (in.Find("annotations") == nullptr) return;
  std::vector<std::string> families;
  in.Strings("annotations", families);
  opt_in.families.pyroscope = std::ranges::find(families, "Pyroscope") != families.end();
  opt_in.families.grafana = std::ranges::find(families, "Grafana") != families.end();
}

void ReadMaxUnavailable(const ObjectReader& in, std::string& max_unavailable) {
  const json* value = in.Find("maxUnavailable");
  if (value == nullptr) return;
  if (value->is_string()) return in.String("maxUnavailable", max_unavailable);
  int32_t number = 0;
  in.Integer("maxUnavailable", number);
  max_unavailable = std::to_string(number);
}

// CPUs as the CRD lets them through ("50m", "0.5", 2), as thousandths.
void ReadMillicores(const ObjectReader& in, int64_t& millicores) {
  const json* value = in.Find("cpu");
  if (value == nullptr) return;
  std::string text = value->is_string() ? value->get<std::string>() : value->dump();
  const bool is_milli = text.ends_with('m');
  if (is_milli) text.pop_back();
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (is_milli) number /= 1000;
  if (error != std::errc() || stop != end || !(number >= 0.005 && number <= 1000))
    return in.Fail("cpu", "CPUs from 5m to 1000, such as 50m or 0.5");
  millicores = std::llround(number * 1000);
}

// Where the agents run.
void ReadPlacement(const ObjectReader& in, AgentPoolSpec& spec) {
  in.Map("nodeSelector", spec.node_selector);
  in.Object("affinity", [&](const ObjectReader& affinity) {
    const json* node = affinity.Find("nodeAffinity");
    if (node != nullptr && !node->empty()) spec.node_affinity = node->dump();
  });
  in.Objects("tolerations", [&](const ObjectReader& toleration) {
    ReadToleration(toleration, spec.tolerations.emplace_back());
  });
}

// What their pods are like.
void ReadPods(const ObjectReader& in, AgentPoolSpec& spec) {
  in.Object("spool",
            [&](const ObjectReader& spool) { spool.String("sizeLimit", spec.spool_size); });
  in.Object("resources", [&](const ObjectReader& resources) {
    resources.Quantities("requests", spec.resources.requests);
    resources.Quantities("limits", spec.resources.limits);
  });
  in.String("image", spec.image);
  in.String("imagePullPolicy", spec.image_pull_policy);
  in.Objects("imagePullSecrets", [&](const ObjectReader& secret) {
    secret.String("name", spec.image_pull_secrets.emplace_back());
  });
  in.String("priorityClassName", spec.priority_class);
  in.Object("updateStrategy", [&](const ObjectReader& strategy) {
    ReadMaxUnavailable(strategy, spec.max_unavailable);
  });
  in.Map("podLabels", spec.pod_labels);
  in.Map("podAnnotations", spec.pod_annotations);
}

void ReadSpec(const ObjectReader& in, AgentPoolSpec& spec) {
  ReadPlacement(in, spec);
  ReadPods(in, spec);
  in.Enumeration<PoolScope>(
      "scope",
      {{"OptIn", PoolScope::kOptIn}, {"AllPods", PoolScope::kAllPods}, {"Node", PoolScope::kNode}},
      spec.scope);
  in.Object("optIn", [&](const ObjectReader& opt_in) { ReadOptIn(opt_in, spec.opt_in); });
  in.Object("sampling", [&](const ObjectReader& sampling) {
    sampling.Integer("frequency", spec.sampling_frequency_hz);
    sampling.Integer("stackDepth", spec.stack_depth);
  });
  in.Object("symbols", [&](const ObjectReader& symbols) {
    symbols.Bool("inlines", spec.inlines);
    symbols.Strings("debuginfodURLs", spec.debuginfod_urls);
  });
  in.Object("budget", [&](const ObjectReader& budget) {
    ReadMillicores(budget, spec.cpu_budget_millicores);
  });
}

void ReadStatus(const ObjectReader& in, AgentPoolStatus& status) {
  in.Integer("observedGeneration", status.observed_generation);
  ReadConditions(in, status.conditions);
  in.Object("nodes", [&](const ObjectReader& nodes) {
    nodes.Integer("desired", status.nodes.desired);
    nodes.Integer("ready", status.nodes.ready);
    nodes.Integer("profiling", status.nodes.profiling);
    nodes.Integer("degraded", status.nodes.degraded);
  });
  ReadPodCounts(in, "annotatedPods", status.annotated_pods);
  ReadFailingPods(in, status.failing_pods);
  ReadWarnings(in, status.warnings);
  in.Objects("problemNodes", [&](const ObjectReader& problem) {
    ProblemNode& node = status.problem_nodes.emplace_back();
    problem.String("name", node.name);
    problem.String("reason", node.reason);
    problem.String("message", node.message);
  });
}

}  // namespace

Result<AgentPool> DecodeAgentPool(const json& object) {
  const ObjectReader root(object, kAgentPoolKind.name);
  AgentPool pool;
  ReadMeta(root, pool.meta);
  root.Object("spec", [&](const ObjectReader& in) { ReadSpec(in, pool.spec); });
  root.Object("status", [&](const ObjectReader& in) { ReadStatus(in, pool.status); });
  if (!root.status().ok()) return root.status();
  return pool;
}

json EncodeStatus(const AgentPoolStatus& status) {
  const AgentPoolStatus::Nodes& nodes = status.nodes;
  json out = {{"observedGeneration", status.observed_generation},
              {"conditions", EncodeConditions(status.conditions)},
              {"nodes",
               {{"desired", nodes.desired},
                {"ready", nodes.ready},
                {"profiling", nodes.profiling},
                {"degraded", nodes.degraded}}},
              {"annotatedPods", EncodePodCounts(status.annotated_pods)}};
  if (!status.failing_pods.empty()) out["failingPods"] = EncodeFailingPods(status.failing_pods);
  if (!status.warnings.empty()) out["warnings"] = EncodeWarnings(status.warnings);
  if (!status.problem_nodes.empty()) {
    json& list = out["problemNodes"] = json::array();
    for (const ProblemNode& node : status.problem_nodes) {
      list.push_back({{"name", node.name}, {"reason", node.reason}, {"message", node.message}});
    }
  }
  return out;
}

}  // namespace flamefleet::api
