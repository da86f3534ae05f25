// SPDX-License-Identifier: Apache-2.0
#include "operator/api/profiling_backend.h"

#include "operator/api/json_reader.h"
#include "operator/api/status_json.h"

namespace flamefleet::api {
namespace {

using nlohmann::json;

constexpr int64_t kDefaultRetentionNs = 72 * 3600 * kNanosPerSecond;  // as in the CRD

void ReadManagedStore(const ObjectReader& in, ManagedStore& managed) {
  std::optional<int64_t> retention_ns;
  in.Duration("retention", retention_ns);
  managed.retention_ns = retention_ns.value_or(kDefaultRetentionNs);
  in.Object("resources", [&](const ObjectReader& resources) {
    resources.Quantities("requests", managed.resources.requests);
    resources.Quantities("limits", managed.resources.limits);
  });
}

void ReadSpec(const ObjectReader& in, ProfilingBackendSpec& spec) {
  in.Bool("default", spec.is_default);
  in.Enumeration<BackendType>(
      "type", {{"Pyroscope", BackendType::kPyroscope}, {"Store", BackendType::kStore}}, spec.type);
  in.String("endpoint", spec.endpoint);
  in.Object("store", [&](const ObjectReader& store) {
    store.Object("managed", [&](const ObjectReader& managed) {
      ReadManagedStore(managed, spec.managed_store.emplace());
    });
  });
}

void ReadStatus(const ObjectReader& in, ProfilingBackendStatus& status) {
  in.Integer("observedGeneration", status.observed_generation);
  ReadConditions(in, status.conditions);
  in.String("endpoint", status.endpoint);
  in.Object("agents", [&](const ObjectReader& agents) {
    agents.Integer("delivering", status.agents.delivering);
    agents.Integer("failing", status.agents.failing);
  });
}

}  // namespace

Result<ProfilingBackend> DecodeProfilingBackend(const json& object) {
  const ObjectReader root(object, kProfilingBackendKind.name);
  ProfilingBackend backend;
  ReadMeta(root, backend.meta);
  root.Object("spec", [&](const ObjectReader& in) { ReadSpec(in, backend.spec); });
  root.Object("status", [&](const ObjectReader& in) { ReadStatus(in, backend.status); });
  if (!root.status().ok()) return root.status();
  return backend;
}

json EncodeStatus(const ProfilingBackendStatus& status) {
  json out = {
      {"observedGeneration", status.observed_generation},
      {"conditions", EncodeConditions(status.conditions)},
      {"agents", {{"delivering", status.agents.delivering}, {"failing", status.agents.failing}}}};
  if (!status.endpoint.empty()) out["endpoint"] = status.endpoint;
  return out;
}

}  // namespace flamefleet::api
