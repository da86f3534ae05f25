// SPDX-License-Identifier: Apache-2.0
#include "operator/api/profiling_backend.h"

#include "operator/api/json_reader.h"
#include "operator/api/status_json.h"

namespace flamefleet::api {
namespace {

using nlohmann::json;

constexpr int64_t kDefaultRetentionNs = 72 * 3600 * kNanosPerSecond;  // as in the CRD

void ReadManagedStore(const ObjectReader& in, ManagedStore& managed) {
  in.Object("storage", [&](const ObjectReader& storage) {
    ManagedStore::Volume volume;
    storage.String("size", volume.size);
    if (volume.size.empty()) return;
    storage.Size("size", volume.size_bytes);
    storage.String("storageClassName", volume.storage_class);
    managed.volume = std::move(volume);
  });
  std::optional<int64_t> retention_ns;
  in.Duration("retention", retention_ns);
  managed.retention_ns = retention_ns.value_or(kDefaultRetentionNs);
  in.Object("resources", [&](const ObjectReader& resources) {
    resources.Quantities("requests", managed.resources.requests);
    resources.Quantities("limits", managed.resources.limits);
  });
}

void ReadSecretKey(const ObjectReader& in, const char* field, std::string default_key,
                   std::optional<SecretKey>& out) {
  in.Object(field, [&](const ObjectReader& ref) {
    out = SecretKey{.key = std::move(default_key)};
    ref.String("name", out->secret);
    ref.String("key", out->key);
  });
}

void ReadSpec(const ObjectReader& in, ProfilingBackendSpec& spec) {
  in.Bool("default", spec.is_default);
  in.Enumeration<BackendType>("type",
                              {{"Pyroscope", BackendType::kPyroscope},
                               {"Parca", BackendType::kParca},
                               {"OTLP", BackendType::kOtlp},
                               {"Store", BackendType::kStore}},
                              spec.type);
  in.String("endpoint", spec.endpoint);
  in.String("tenantID", spec.tenant_id);
  in.Object("tls", [&](const ObjectReader& tls) {
    ReadSecretKey(tls, "caSecretRef", "ca.crt", spec.tls.ca);
    tls.String("serverName", spec.tls.server_name);
    tls.Bool("insecureSkipVerify", spec.tls.insecure_skip_verify);
  });
  in.Object("auth", [&](const ObjectReader& auth) {
    auth.Object("basic", [&](const ObjectReader& basic) {
      basic.Object("secretRef",
                   [&](const ObjectReader& ref) { ref.String("name", spec.auth.basic_secret); });
    });
    ReadSecretKey(auth, "bearerTokenSecretRef", "token", spec.auth.bearer_token);
  });
  in.Object("limits", [&](const ObjectReader& limits) {
    limits.Size("bytesPerSecond", spec.limits.bytes_per_second);
    limits.Size("maxProfileSize", spec.limits.max_profile_bytes);
  });
  in.Duration("ingestionWindow", spec.ingestion_window_ns);
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
  in.Object("backlog", [&](const ObjectReader& backlog) {
    backlog.Integer("profiles", status.backlog.profiles);
    backlog.Integer("bytes", status.backlog.bytes);
    backlog.Time("oldest", status.backlog.oldest_ns);
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
      {"agents", {{"delivering", status.agents.delivering}, {"failing", status.agents.failing}}},
      {"backlog", {{"profiles", status.backlog.profiles}, {"bytes", status.backlog.bytes}}}};
  if (status.backlog.oldest_ns != 0)
    out["backlog"]["oldest"] = FormatSeconds(status.backlog.oldest_ns);
  if (!status.endpoint.empty()) out["endpoint"] = status.endpoint;
  return out;
}

}  // namespace flamefleet::api
