// SPDX-License-Identifier: Apache-2.0
#include "operator/api/pod.h"

#include "operator/api/json_reader.h"

namespace flamefleet::api {
namespace {

void ReadContainer(const ObjectReader& in, bool init, Pod& pod) {
  Container& container = pod.containers.emplace_back();
  in.String("name", container.name);
  if (init) {
    std::string restart_policy;
    in.String("restartPolicy", restart_policy);
    container.kind = restart_policy == "Always" ? ContainerKind::kSidecar : ContainerKind::kInit;
  }
  in.Objects("ports", [&](const ObjectReader& port_in) {
    ContainerPort& port = container.ports.emplace_back();
    port_in.String("name", port.name);
    port_in.Integer("containerPort", port.number);
  });
}

void ReadContainerStatus(const ObjectReader& in, Pod& pod) {
  std::string name;
  in.String("name", name);
  for (Container& container : pod.containers) {
    if (container.name != name) continue;
    in.String("containerID", container.id);
    if (const size_t scheme = container.id.find("://"); scheme != std::string::npos) {
      container.id.erase(0, scheme + 3);
    }
    in.Object("state", [&](const ObjectReader& state) {
      container.running = state.Find("running") != nullptr;
    });
  }
}

// The Deployment behind a ReplicaSet has its name without the template hash, which is also a label
// of the pod.
void ReadWorkload(const ObjectReader& metadata, Pod& pod) {
  metadata.Objects("ownerReferences", [&](const ObjectReader& owner) {
    bool controller = false;
    owner.Bool("controller", controller);
    if (!controller) return;
    owner.String("kind", pod.workload_kind);
    owner.String("name", pod.workload_name);
  });
  const auto hash = pod.labels.find("pod-template-hash");
  if (pod.workload_kind != "ReplicaSet" || hash == pod.labels.end()) return;
  const std::string suffix = "-" + hash->second;
  if (pod.workload_name.size() > suffix.size() && pod.workload_name.ends_with(suffix)) {
    pod.workload_kind = "Deployment";
    pod.workload_name.resize(pod.workload_name.size() - suffix.size());
  }
}

void ReadStatus(const ObjectReader& in, Pod& pod) {
  in.String("podIP", pod.ip);
  std::string phase;
  in.String("phase", phase);
  if (phase == "Pending") pod.phase = PodPhase::kPending;
  if (phase == "Running") pod.phase = PodPhase::kRunning;
  if (phase == "Succeeded") pod.phase = PodPhase::kSucceeded;
  if (phase == "Failed") pod.phase = PodPhase::kFailed;
  in.Objects("conditions", [&](const ObjectReader& condition) {
    std::string type;
    std::string status;
    condition.String("type", type);
    condition.String("status", status);
    if (type == "Ready") pod.ready = status == "True";
  });
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    in.Objects(list, [&](const ObjectReader& status) { ReadContainerStatus(status, pod); });
  }
}

}  // namespace

bool IsProfilingAnnotation(std::string_view key) {
  return key.starts_with(kPyroscopePrefix) || key.starts_with(kGrafanaPrefix) ||
         key == kOtelServiceName;
}

Result<Pod> DecodePod(const nlohmann::json& object) {
  const ObjectReader root(object, "Pod");
  Pod pod;
  ReadMeta(root, pod.meta);
  root.Object("metadata", [&](const ObjectReader& in) {
    in.Map("labels", pod.labels);
    in.Map("annotations", pod.annotations, IsProfilingAnnotation);
    ReadWorkload(in, pod);
  });
  root.Object("spec", [&](const ObjectReader& in) {
    in.String("nodeName", pod.node);
    in.Objects("containers",
               [&](const ObjectReader& container) { ReadContainer(container, false, pod); });
    in.Objects("initContainers",
               [&](const ObjectReader& container) { ReadContainer(container, true, pod); });
  });
  root.Object("status", [&](const ObjectReader& in) { ReadStatus(in, pod); });
  if (!root.status().ok()) return root.status();
  return pod;
}

}  // namespace flamefleet::api
