// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod.h"

#include "operator/api/json_reader.h"
#include "operator/api/message_reader.h"

namespace flamefleet::api {
namespace {

// Each function reads from an ObjectReader (JSON) or a MessageReader (protobuf).

template <typename Reader>
void ReadContainer(const Reader& in, bool init, Pod& pod) {
  Container& container = pod.containers.emplace_back();
  in.String({"name", 1}, container.name);
  if (init) {
    std::string restart_policy;
    in.String({"restartPolicy", 24}, restart_policy);
    container.kind = restart_policy == "Always" ? ContainerKind::kSidecar : ContainerKind::kInit;
  }
  in.Objects({"ports", 6}, [&](const auto& port_in) {
    ContainerPort& port = container.ports.emplace_back();
    port_in.String({"name", 1}, port.name);
    port_in.Integer({"containerPort", 3}, port.number);
  });
}

template <typename Reader>
void ReadContainerStatus(const Reader& in, Pod& pod) {
  std::string name;
  in.String({"name", 1}, name);
  for (Container& container : pod.containers) {
    if (container.name != name) continue;
    in.String({"containerID", 8}, container.id);
    if (const size_t scheme = container.id.find("://"); scheme != std::string::npos) {
      container.id.erase(0, scheme + 3);
    }
    in.Object({"state", 2}, [&](const auto& state) {
      container.running = state.Has({"running", 2});
    });
  }
}

// The Deployment behind a ReplicaSet has its name without the template hash, which is also a label
// of the pod.
template <typename Reader>
void ReadWorkload(const Reader& metadata, Pod& pod) {
  metadata.Objects({"ownerReferences", 13}, [&](const auto& owner) {
    bool controller = false;
    owner.Bool({"controller", 6}, controller);
    if (!controller) return;
    owner.String({"kind", 1}, pod.workload_kind);
    owner.String({"name", 3}, pod.workload_name);
  });
  const auto hash = pod.labels.find("pod-template-hash");
  if (pod.workload_kind != "ReplicaSet" || hash == pod.labels.end()) return;
  const std::string suffix = "-" + hash->second;
  if (pod.workload_name.size() > suffix.size() && pod.workload_name.ends_with(suffix)) {
    pod.workload_kind = "Deployment";
    pod.workload_name.resize(pod.workload_name.size() - suffix.size());
  }
}

template <typename Reader>
void ReadStatus(const Reader& in, Pod& pod) {
  in.String({"podIP", 6}, pod.ip);
  std::string phase;
  in.String({"phase", 1}, phase);
  if (phase == "Pending") pod.phase = PodPhase::kPending;
  if (phase == "Running") pod.phase = PodPhase::kRunning;
  if (phase == "Succeeded") pod.phase = PodPhase::kSucceeded;
  if (phase == "Failed") pod.phase = PodPhase::kFailed;
  in.Objects({"conditions", 2}, [&](const auto& condition) {
    std::string type;
    std::string status;
    condition.String({"type", 1}, type);
    condition.String({"status", 2}, status);
    if (type == "Ready") pod.ready = status == "True";
  });
  for (const Field list : {Field{"containerStatuses", 8}, Field{"initContainerStatuses", 10}}) {
    in.Objects(list, [&](const auto& status) { ReadContainerStatus(status, pod); });
  }
}

template <typename Reader>
Result<Pod> ReadPod(const Reader& root) {
  Pod pod;
  ReadMeta(root, pod.meta);
  root.Object({"metadata", 1}, [&](const auto& in) {
    in.Map({"labels", 11}, pod.labels, [](std::string_view) { return true; });
    in.Map({"annotations", 12}, pod.annotations, IsProfilingAnnotation);
    ReadWorkload(in, pod);
  });
  root.Object({"spec", 2}, [&](const auto& in) {
    in.String({"nodeName", 10}, pod.node);
    in.Objects({"containers", 2},
               [&](const auto& container) { ReadContainer(container, false, pod); });
    in.Objects({"initContainers", 20},
               [&](const auto& container) { ReadContainer(container, true, pod); });
  });
  root.Object({"status", 3}, [&](const auto& in) { ReadStatus(in, pod); });
  if (!root.status().ok()) return root.status();
  return pod;
}

}  // namespace

bool IsProfilingAnnotation(std::string_view key) {
  return key.starts_with(kPyroscopePrefix) || key.starts_with(kGrafanaPrefix) ||
         key == kOtelServiceName;
}

Result<Pod> DecodePod(const nlohmann::json& object) {
  return ReadPod(ObjectReader(object, "Pod"));
}

Result<Pod> DecodePodMessage(std::string_view message) {
  return ReadPod(MessageReader(message, "Pod"));
}

}  // namespace flamefleet::api
