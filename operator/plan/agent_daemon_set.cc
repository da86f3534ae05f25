// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "operator/plan/names.h"
#include "operator/plan/object_parts.h"
#include "operator/plan/objects.h"

namespace flamefleet::plan {
namespace {

using nlohmann::json;

// All that the agent may do beyond any root process of a container; drop ALL comes first.
constexpr std::string_view kCapabilities[] = {
    "BPF",                 // load programs and maps
    "PERFMON",             // sampling events of all processes
    "SYS_PTRACE",          // /proc/PID of other users' processes
    "CHECKPOINT_RESTORE",  // /proc/PID/map_files: the binaries that processes run
    "DAC_READ_SEARCH",     // read them whoever owns them
    "SYSLOG",              // addresses in /proc/kallsyms
};

// On the node as in the agent's container.
constexpr const char* kSpoolFolder = "/var/lib/flamefleet";
// Where the agent expects what it needs to talk to the operator, and keeps its assignment.
constexpr std::string_view kOperatorDir = "/var/run/flamefleet/operator";
constexpr std::string_view kStateDir = "/var/run/flamefleet/state";
// The kubelet makes a new token when a fifth of its life is left.
constexpr int kTokenSeconds = 3600;

json FieldFromPod(std::string_view name, std::string_view path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

json Tolerations(const std::vector<api::Toleration>& tolerations) {
  json list = json::array();
  for (const api::Toleration& toleration : tolerations) {
    json entry = json::object();
    if (!toleration.key.empty()) entry["key"] = toleration.key;
    if (!toleration.op.empty()) entry["operator"] = toleration.op;
    if (!toleration.value.empty()) entry["value"] = toleration.value;
    if (!toleration.effect.empty()) entry["effect"] = toleration.effect;
    if (toleration.seconds) entry["tolerationSeconds"] = *toleration.seconds;
    list.push_back(std::move(entry));
  }
  return list;
}

json Container(const api::AgentPool& pool, const ObjectSettings& settings) {
  json container = {
      {"name", "agent"},
      {"image", pool.spec.image.empty() ? settings.image : pool.spec.image},
      {"command", {"/usr/bin/flamefleet-agent"}},
      {"args",
       {"run", "--operator=" + OperatorAddress(settings.ns), "--state=" + std::string(kStateDir),
        "--listen=:" + std::to_string(kAgentHttpPort),
        // By node: test clusters have several on one host. Kubernetes fills in the variable.
        std::string("--spool=") + kSpoolFolder + "/$(FLAMEFLEET_NODE)",
        "--spool-size=" + pool.spec.spool_size}},
      {"env",
       {FieldFromPod("FLAMEFLEET_NODE", "spec.nodeName"),
        FieldFromPod("FLAMEFLEET_POD", "metadata.name"),
        json{{"name", "FLAMEFLEET_POOL"}, {"value", pool.meta.name}}}},
      {"ports", {{{"name", "http"}, {"containerPort", kAgentHttpPort}, {"protocol", "TCP"}}}},
      {"livenessProbe", HttpProbe("/healthz", /*period_seconds=*/20, /*failures=*/3)},
      // A backend that is away is no fault of an agent, and must not stop a rolling update.
      {"readinessProbe",
       HttpProbe("/readyz?exclude=delivery", /*period_seconds=*/5, /*failures=*/3)},
      {"resources", ResourcesJson(pool.spec.resources)},
      {"volumeMounts",
       {{{"name", "operator"}, {"mountPath", kOperatorDir}, {"readOnly", true}},
        {{"name", "state"}, {"mountPath", kStateDir}},
        {{"name", "spool"}, {"mountPath", kSpoolFolder}}}},
      {"securityContext",
       {{"runAsUser", 0},
        {"allowPrivilegeEscalation", false},
        {"readOnlyRootFilesystem", true},
        {"capabilities", {{"drop", {"ALL"}}, {"add", kCapabilities}}}}}};
  // The policy of the operator's own image does not fit another one.
  const std::string policy = !pool.spec.image_pull_policy.empty() ? pool.spec.image_pull_policy
                             : pool.spec.image.empty()            ? settings.image_pull_policy
                                                                  : "";
  if (!policy.empty()) container["imagePullPolicy"] = policy;
  return container;
}

// The token is good for the operator only: the API server takes it for nothing.
json Volumes() {
  return {
      {{"name", "operator"},
       {"projected",
        {{"sources",
          {{{"serviceAccountToken",
             {{"audience", kTokenAudience},
              {"expirationSeconds", kTokenSeconds},
              {"path", "token"}}}},
           {{"configMap",
             {{"name", kTrustConfigMap},
              {"items", {{{"key", kTrustKey}, {"path", "ca.crt"}}}}}}}}}}}},
      // It outlives the container, not the pod: nothing is left on a node.
      {{"name", "state"}, {"emptyDir", json::object()}},
      {{"name", "spool"}, {"hostPath", {{"path", kSpoolFolder}, {"type", "DirectoryOrCreate"}}}}};
}

// A number or a percentage, as the API wants them.
json MaxUnavailable(const std::string& text) {
  if (text.ends_with('%')) return text;
  return std::strtol(text.c_str(), nullptr, 10);
}

json PodSpec(const api::AgentPool& pool, const ObjectSettings& settings) {
  json spec = {{"serviceAccountName", kAgentServiceAccount},
               {"automountServiceAccountToken", false},
               {"hostPID", true},
               {"terminationGracePeriodSeconds", 15},
               {"securityContext", {{"seccompProfile", {{"type", "RuntimeDefault"}}}}},
               {"tolerations", Tolerations(pool.spec.tolerations)},
               {"containers", json::array({Container(pool, settings)})},
               {"volumes", Volumes()}};
  if (!pool.spec.node_selector.empty()) spec["nodeSelector"] = pool.spec.node_selector;
  if (!pool.spec.node_affinity.empty()) {
    spec["affinity"]["nodeAffinity"] = json::parse(pool.spec.node_affinity, nullptr, false);
  }
  if (!pool.spec.priority_class.empty()) spec["priorityClassName"] = pool.spec.priority_class;
  for (const std::string& secret : pool.spec.image_pull_secrets) {
    spec["imagePullSecrets"].push_back({{"name", secret}});
  }
  return spec;
}

// Ours win over the user's: the selector needs them.
json PodMetadata(const api::AgentPoolSpec& spec, const json& labels) {
  json metadata = {{"labels", spec.pod_labels}};
  metadata["labels"].update(WithInfoLabels(labels));
  if (!spec.pod_annotations.empty()) metadata["annotations"] = spec.pod_annotations;
  return metadata;
}

}  // namespace

json AgentDaemonSet(const api::AgentPool& pool, const ObjectSettings& settings) {
  const json labels = SelectorLabels("agent", api::kPoolLabel, pool.meta.name);
  const json rolling_update = {{"maxUnavailable", MaxUnavailable(pool.spec.max_unavailable)}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "DaemonSet"},
          {"metadata", OwnedMetadata(AgentDaemonSetName(pool.meta.name), settings.ns, labels,
                                     api::kAgentPoolKind, pool.meta)},
          {"spec",
           {{"selector", {{"matchLabels", labels}}},
            {"updateStrategy", {{"type", "RollingUpdate"}, {"rollingUpdate", rolling_update}}},
            {"template",
             {{"metadata", PodMetadata(pool.spec, labels)}, {"spec", PodSpec(pool, settings)}}}}}};
}

}  // namespace flamefleet::plan
