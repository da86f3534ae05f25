// SPDX-License-Identifier: Apache-2.0
// Resource: the address of a kind in the API, and the paths made of it.
#pragma once

#include <string>
#include <string_view>

namespace flamefleet {

struct Resource {
  std::string_view kind;         // "Pod"; also the value of the metric label `kind`
  std::string_view api_version;  // "v1", "apps/v1"
  std::string_view plural;       // "pods"
  bool namespaced = true;
};

// Every kind that the operator reads or writes.
inline constexpr Resource kPods{"Pod", "v1", "pods"};
inline constexpr Resource kNamespaces{"Namespace", "v1", "namespaces", /*namespaced=*/false};
inline constexpr Resource kServices{"Service", "v1", "services"};
inline constexpr Resource kDaemonSets{"DaemonSet", "apps/v1", "daemonsets"};
inline constexpr Resource kDeployments{"Deployment", "apps/v1", "deployments"};
inline constexpr Resource kStatefulSets{"StatefulSet", "apps/v1", "statefulsets"};
inline constexpr Resource kSecrets{"Secret", "v1", "secrets"};
inline constexpr Resource kConfigMaps{"ConfigMap", "v1", "configmaps"};
inline constexpr Resource kTokenReviews{"TokenReview", "authentication.k8s.io/v1", "tokenreviews",
                                        /*namespaced=*/false};
inline constexpr Resource kLeases{"Lease", "coordination.k8s.io/v1", "leases"};
inline constexpr Resource kEvents{"Event", "events.k8s.io/v1", "events"};
inline constexpr Resource kProfilingTargets{"ProfilingTarget", "flamefleet.dev/v1alpha1",
                                            "profilingtargets"};
inline constexpr Resource kProfilingBackends{"ProfilingBackend", "flamefleet.dev/v1alpha1",
                                             "profilingbackends", /*namespaced=*/false};
inline constexpr Resource kAgentPools{"AgentPool", "flamefleet.dev/v1alpha1", "agentpools",
                                      /*namespaced=*/false};

// "/apis/apps/v1/daemonsets" or "/api/v1/namespaces/shop/pods"; without a namespace: of the
// cluster.
std::string CollectionPath(const Resource& resource, const std::string& ns = "");
// "/apis/apps/v1/namespaces/shop/daemonsets/agent"; `ns` is ignored for cluster-scoped
// kinds.
std::string ObjectPath(const Resource& resource, const std::string& ns, const std::string& name);

}  // namespace flamefleet
