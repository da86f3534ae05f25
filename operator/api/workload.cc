// SPDX-License-Identifier: Apache-2.0
#include "operator/api/workload.h"

#include "operator/api/json_reader.h"

namespace flamefleet::api {
namespace {

void ReadLabels(const ObjectReader& root, Workload& workload) {
  ReadMeta(root, workload.meta);
  root.Object("metadata", [&](const ObjectReader& in) { in.Map("labels", workload.labels); });
}

}  // namespace

Result<Workload> DecodeDaemonSet(const nlohmann::json& object) {
  const ObjectReader root(object, "DaemonSet");
  Workload workload;
  ReadLabels(root, workload);
  root.Object("status", [&](const ObjectReader& in) {
    in.Integer("observedGeneration", workload.observed_generation);
    in.Integer("desiredNumberScheduled", workload.desired);
    in.Integer("currentNumberScheduled", workload.created);
    in.Integer("updatedNumberScheduled", workload.updated);
    in.Integer("numberReady", workload.ready);
  });
  if (!root.status().ok()) return root.status();
  return workload;
}

Result<Workload> DecodeReplicas(const nlohmann::json& object) {
  const ObjectReader root(object, "workload");
  Workload workload;
  ReadLabels(root, workload);
  workload.desired = 1;  // as the API server defaults it
  root.Object("spec", [&](const ObjectReader& in) { in.Integer("replicas", workload.desired); });
  root.Object("status", [&](const ObjectReader& in) {
    in.Integer("observedGeneration", workload.observed_generation);
    in.Integer("updatedReplicas", workload.updated);
    in.Integer("availableReplicas", workload.ready);
  });
  if (!root.status().ok()) return root.status();
  return workload;
}

}  // namespace flamefleet::api
