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
// The store keeps below its own bound; the volume's is higher, since SQLite needs room for its log:
// a pod over it is evicted.
constexpr std::string_view kStoreMaxSize = "4Gi";
constexpr std::string_view kVolumeMaxSize = "5Gi";

json Labels(const api::ProfilingBackend& backend) {
  return SelectorLabels("store", api::kBackendLabel, backend.meta.name);
}

json Container(const api::ManagedStore& store, const ObjectSettings& settings) {
  const std::string retention = std::to_string(store.retention_ns / kNanosPerSecond) + "s";
  json container = {
      {"name", "store"},
      {"image", settings.image},
      {"command", {"/usr/bin/flamefleet-store"}},
      {"args",
       {"--listen=:" + std::to_string(kStorePort), "--data=/data", "--retention=" + retention,
        "--max-size=" + std::string(kStoreMaxSize)}},
      {"ports", {{{"name", "http"}, {"containerPort", kStorePort}, {"protocol", "TCP"}}}},
      {"livenessProbe", HttpProbe("/healthz", /*period_seconds=*/20, /*failures=*/6)},
      {"readinessProbe", HttpProbe("/readyz", /*period_seconds=*/5, /*failures=*/2)},
      {"resources", ResourcesJson(store.resources)},
      {"volumeMounts", {{{"name", "data"}, {"mountPath", "/data"}}}},
      {"securityContext",
       {{"allowPrivilegeEscalation", false},
        {"readOnlyRootFilesystem", true},
        {"capabilities", {{"drop", {"ALL"}}}}}}};
  if (!settings.image_pull_policy.empty())
    container["imagePullPolicy"] = settings.image_pull_policy;
  return container;
}

}  // namespace

json StoreDeployment(const api::ProfilingBackend& backend, const ObjectSettings& settings) {
  const json labels = Labels(backend);
  const json pod = {
      {"automountServiceAccountToken", false},
      {"terminationGracePeriodSeconds", 30},
      {"securityContext",
       {{"runAsNonRoot", true},
        {"runAsUser", kUser},
        {"runAsGroup", kUser},
        {"fsGroup", kUser},
        {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
      {"containers", json::array({Container(*backend.spec.managed_store, settings)})},
      {"volumes", {{{"name", "data"}, {"emptyDir", {{"sizeLimit", kVolumeMaxSize}}}}}}};
  return {{"apiVersion", "apps/v1"},
          {"kind", "Deployment"},
          {"metadata", OwnedMetadata(StoreName(backend.meta.name), settings.ns, labels,
                                     api::kProfilingBackendKind, backend.meta)},
          {"spec",
           {{"replicas", 1},
            {"strategy", {{"type", "Recreate"}}},  // one store, one folder
            {"selector", {{"matchLabels", labels}}},
            {"template", {{"metadata", {{"labels", WithInfoLabels(labels)}}}, {"spec", pod}}}}}};
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
             {{{"name", "http"},
               {"port", kStorePort},
               {"targetPort", "http"},
               {"protocol", "TCP"}}}}}}};
}

}  // namespace flamefleet::plan
