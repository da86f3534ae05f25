// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "operator/plan/names.h"
#include "operator/plan/object_parts.h"
#include "operator/plan/objects.h"

namespace flamefleet::plan {
namespace {

using nlohmann::json;

constexpr int kUser = 65532;  // as in our image
// Of the ephemeral volume: a pod over it is evicted.
constexpr std::string_view kEphemeralSize = "5Gi";
constexpr int64_t kEphemeralBytes = int64_t{5} << 30;

// The store keeps below a bound of its own, since SQLite needs room for its log.
int64_t StoreMaxBytes(const api::ManagedStore& store) {
  return (store.volume ? store.volume->size_bytes : kEphemeralBytes) / 5 * 4;
}

json Labels(const api::ProfilingBackend& backend) {
  return SelectorLabels("store", api::kBackendLabel, backend.meta.name);
}

constexpr const char* kKeysFolder = "/keys";

json Ports() {
  return {{{"name", "https"}, {"containerPort", kStoreTlsPort}, {"protocol", "TCP"}},
          {{"name", "forward"}, {"containerPort", kStorePort}, {"protocol", "TCP"}},
          {{"name", "http"}, {"containerPort", kStoreHttpPort}, {"protocol", "TCP"}}};
}

// What the operator made for this store, and nothing of others.
json KeysVolume(const std::string& backend) {
  constexpr int kReadableByOurGroup = 0440;
  return {{"name", "keys"},
          {"secret",
           {{"secretName", kStoreSecret},
            {"defaultMode", kReadableByOurGroup},
            {"items",
             {{{"key", StoreKey(backend, kStoreCertificate)}, {"path", "tls.crt"}},
              {{"key", StoreKey(backend, kStoreCertificateKey)}, {"path", "tls.key"}},
              {{"key", StoreKey(backend, kStoreAuth)}, {"path", "auth"}}}}}}};
}

json Container(const api::ManagedStore& store, const ObjectSettings& settings) {
  const std::string keys = kKeysFolder;
  const std::string retention = std::to_string(store.retention_ns / kNanosPerSecond) + "s";
  json container = {
      {"name", "store"},
      {"image", settings.image},
      {"command", {"/usr/bin/flamefleet-store"}},
      {"args",
       {"--listen=:" + std::to_string(kStoreTlsPort), "--tls-cert=" + keys + "/tls.crt",
        "--tls-key=" + keys + "/tls.key", "--auth-file=" + keys + "/auth",
        "--read-listen=127.0.0.1:" + std::to_string(kStorePort),
        "--probe-listen=:" + std::to_string(kStoreHttpPort), "--data=/data",
        "--retention=" + retention, "--max-size=" + std::to_string(StoreMaxBytes(store))}},
      {"ports", Ports()},
      {"livenessProbe", HttpProbe("/healthz", /*period_seconds=*/20, /*failures=*/6)},
      {"readinessProbe", HttpProbe("/readyz", /*period_seconds=*/5, /*failures=*/2)},
      {"resources", ResourcesJson(store.resources)},
      {"volumeMounts",
       {{{"name", "data"}, {"mountPath", "/data"}},
        {{"name", "keys"}, {"mountPath", kKeysFolder}, {"readOnly", true}}}},
      {"securityContext",
       {{"allowPrivilegeEscalation", false},
        {"readOnlyRootFilesystem", true},
        {"capabilities", {{"drop", {"ALL"}}}}}}};
  if (!settings.image_pull_policy.empty())
    container["imagePullPolicy"] = settings.image_pull_policy;
  return container;
}

json VolumeClaim(const api::ManagedStore::Volume& volume) {
  json claim = {{"metadata", {{"name", "data"}}},
                {"spec",
                 {{"accessModes", {"ReadWriteOnce"}},
                  {"resources", {{"requests", {{"storage", volume.size}}}}}}}};
  if (!volume.storage_class.empty()) claim["spec"]["storageClassName"] = volume.storage_class;
  return claim;
}

}  // namespace

json StoreWorkload(const api::ProfilingBackend& backend, const ObjectSettings& settings) {
  const json labels = Labels(backend);
  const auto& volume = backend.spec.managed_store->volume;
  json pod = {{"automountServiceAccountToken", false},
              {"terminationGracePeriodSeconds", 30},
              {"securityContext",
               {{"runAsNonRoot", true},
                {"runAsUser", kUser},
                {"runAsGroup", kUser},
                {"fsGroup", kUser},
                {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
              {"containers", json::array({Container(*backend.spec.managed_store, settings)})},
              {"volumes", json::array({KeysVolume(backend.meta.name)})}};
  json spec = {{"replicas", 1}, {"selector", {{"matchLabels", labels}}}};
  const std::string name = StoreName(backend.meta.name);
  if (volume) {
    spec["serviceName"] = name;
    // The default would wait for ever for a pod whose image is wrong, even when it is put right.
    spec["podManagementPolicy"] = "Parallel";
    spec["volumeClaimTemplates"] = json::array({VolumeClaim(*volume)});
  } else {
    spec["strategy"] = {{"type", "Recreate"}};  // one store, one folder
    pod["volumes"].push_back({{"name", "data"}, {"emptyDir", {{"sizeLimit", kEphemeralSize}}}});
  }
  spec["template"] = {{"metadata", {{"labels", WithInfoLabels(labels)}}}, {"spec", std::move(pod)}};
  return {{"apiVersion", "apps/v1"},
          {"kind", volume ? "StatefulSet" : "Deployment"},
          {"metadata",
           OwnedMetadata(name, settings.ns, labels, api::kProfilingBackendKind, backend.meta)},
          {"spec", std::move(spec)}};
}

json StoreService(const api::ProfilingBackend& backend, const ObjectSettings& settings) {
  const json labels = Labels(backend);
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", OwnedMetadata(StoreName(backend.meta.name), settings.ns, labels,
                                     api::kProfilingBackendKind, backend.meta)},
          {"spec",
           {{"selector", labels},
            {"ports",
             {{{"name", "https"},
               {"port", kStoreTlsPort},
               {"targetPort", "https"},
               {"protocol", "TCP"}},
              // For `kubectl port-forward service/...`; nobody else reaches it.
              {{"name", "forward"},
               {"port", kStorePort},
               {"targetPort", "forward"},
               {"protocol", "TCP"}}}}}}};
}

json StoreReader(const api::ProfilingBackend& backend, const std::string& ns,
                 const api::StringMap& values) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", OwnedMetadata(StoreReaderSecret(backend.meta.name), ns, Labels(backend),
                                     api::kProfilingBackendKind, backend.meta)},
          {"type", "kubernetes.io/basic-auth"},
          {"stringData", values}};
}

}  // namespace flamefleet::plan
