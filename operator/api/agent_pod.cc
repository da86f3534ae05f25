// SPDX-License-Identifier: Apache-2.0
#include "operator/api/agent_pod.h"

#include "operator/api/json_reader.h"

namespace flamefleet::api {
namespace {

// The DaemonSet controller says by the name where a pod is to run, long before the scheduler does.
void ReadIntendedNode(const ObjectReader& spec, std::string& node) {
  spec.Object("affinity", [&](const ObjectReader& affinity) {
    affinity.Object("nodeAffinity", [&](const ObjectReader& node_affinity) {
      node_affinity.Object("requiredDuringSchedulingIgnoredDuringExecution",
                           [&](const ObjectReader& required) {
                             required.Objects("nodeSelectorTerms", [&](const ObjectReader& term) {
                               term.Objects("matchFields", [&](const ObjectReader& field) {
                                 std::string op;
                                 std::vector<std::string> values;
                                 field.String("operator", op);
                                 field.Strings("values", values);
                                 if (op == "In" && values.size() == 1) node = values.front();
                               });
                             });
                           });
    });
  });
}

// Why a container that ended did so: "OOMKilled, exit code 137".
std::string Ending(const ObjectReader& terminated) {
  std::string reason;
  std::string message;
  int64_t exit_code = 0;
  terminated.String("reason", reason);
  terminated.String("message", message);
  terminated.Integer("exitCode", exit_code);
  if (reason.empty()) reason = "Error";
  return reason + ", exit code " + std::to_string(exit_code) +
         (message.empty() ? "" : ": " + message);
}

void ReadContainerStatus(const ObjectReader& in, AgentPod& pod) {
  bool ready = false;
  in.Bool("ready", ready);
  if (ready || !pod.reason.empty()) return;
  in.Object("state", [&](const ObjectReader& state) {
    state.Object("waiting", [&](const ObjectReader& waiting) {
      waiting.String("reason", pod.reason);
      waiting.String("message", pod.message);
    });
  });
  if (pod.reason == "ContainerCreating" || pod.reason == "PodInitializing") {
    pod.reason.clear();
    pod.message.clear();
  }
  // It ended, or runs anew but is not ready: how it ended before says more than that it waits.
  const auto ended = [&](const ObjectReader& state) {
    state.Object("terminated", [&](const ObjectReader& terminated) {
      pod.reason = "CrashLoopBackOff";
      pod.message = Ending(terminated);
    });
  };
  if (!pod.reason.empty() && pod.reason != "CrashLoopBackOff") return;
  in.Object("lastState", ended);
  in.Object("state", ended);
}

}  // namespace

Result<AgentPod> DecodeAgentPod(const nlohmann::json& object) {
  const ObjectReader root(object, "Pod");
  AgentPod pod;
  ReadMeta(root, pod.meta);
  pod.meta.resource_version.clear();
  root.Object("metadata", [&](const ObjectReader& in) {
    StringMap labels;
    in.Map("labels", labels);
    pod.pool = labels[std::string(kPoolLabel)];
  });
  root.Object("spec", [&](const ObjectReader& in) {
    ReadIntendedNode(in, pod.node);
    in.String("nodeName", pod.node);
  });
  root.Object("status", [&](const ObjectReader& in) {
    in.Objects("conditions", [&](const ObjectReader& condition) {
      std::string type;
      std::string status;
      condition.String("type", type);
      condition.String("status", status);
      if (type != "PodScheduled" || status != "False") return;
      condition.String("reason", pod.reason);
      condition.String("message", pod.message);
    });
    in.Objects("containerStatuses",
               [&](const ObjectReader& status) { ReadContainerStatus(status, pod); });
  });
  if (!root.status().ok()) return root.status();
  return pod;
}

}  // namespace flamefleet::api
