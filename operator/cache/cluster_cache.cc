// SPDX-License-Identifier: Apache-2.0
#include "operator/cache/cluster_cache.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/thread.h"

namespace flamefleet {
namespace {

using nlohmann::json;

constexpr const char* kOwnedSelector = "app.kubernetes.io/managed-by=flamefleet-operator";
constexpr const char* kAgentPodSelector = "flamefleet.dev/pool";
constexpr const char* kRefusedPodsSelector = "regarding.kind=DaemonSet,reason=FailedCreate";

GaugeMetric CountOf(Metrics& metrics, std::string_view kind) {
  return metrics.Gauge("flamefleet_operator_cached_objects", "Objects in the cache.",
                       {{"kind", std::string(kind)}});
}

GaugeMetric CountOf(Metrics& metrics, const Resource& resource) {
  return CountOf(metrics, resource.kind);
}

template <Result<api::Workload> (*kDecode)(const json&)>
Result<OwnedWorkload> DecodeOwned(const json& object) {
  FF_ASSIGN_OR_RETURN(api::Workload workload, kDecode(object));
  return OwnedWorkload{std::move(workload), ReadOwnedFields(object)};
}

}  // namespace

ClusterCache::ClusterCache(std::string ns, Metrics& metrics,
                           const std::vector<std::string>& watched)
    : metrics_(metrics),
      pods(mutex_, CountOf(metrics, kPods)),
      targets(mutex_, api::DecodeProfilingTarget, CountOf(metrics, kProfilingTargets)),
      backends(mutex_, api::DecodeProfilingBackend, CountOf(metrics, kProfilingBackends)),
      pools(mutex_, api::DecodeAgentPool, CountOf(metrics, kAgentPools)),
      daemon_sets(mutex_, DecodeOwned<api::DecodeDaemonSet>, CountOf(metrics, kDaemonSets)),
      deployments(mutex_, DecodeOwned<api::DecodeReplicas>, CountOf(metrics, kDeployments)),
      stateful_sets(mutex_, DecodeOwned<api::DecodeReplicas>, CountOf(metrics, kStatefulSets)),
      // A Service has none of a workload's numbers; reading it as a DaemonSet takes its metadata.
      services(mutex_, DecodeOwned<api::DecodeDaemonSet>, CountOf(metrics, kServices)),
      namespaces(mutex_, api::DecodeNamespace, CountOf(metrics, kNamespaces)),
      agent_pods(mutex_, api::DecodeAgentPod, CountOf(metrics, "AgentPod")),
      refused_pods(mutex_, api::DecodeObjectEvent, CountOf(metrics, kEvents)),
      secrets(ns, metrics),
      ns_(std::move(ns)),
      watched_(watched.begin(), watched.end()) {
  if (!watched_.empty()) watched_.insert(ns_);  // its agents' pods
}

ClusterCache::~ClusterCache() {
  Stop();
}

void ClusterCache::Start(RestClient& client, const Clock& clock) {
  secrets.Start(client, clock);
  struct Watch {
    const char* thread;
    const Resource& resource;
    ObjectSink& sink;
    bool own;  // only of the operator's namespace, and what these select
    const char* label_selector;
    const char* field_selector;
  };
  const Watch watches[] = {
      {"watch-targets", kProfilingTargets, targets, false, "", ""},
      {"watch-backends", kProfilingBackends, backends, false, "", ""},
      {"watch-pools", kAgentPools, pools, false, "", ""},
      {"watch-daemonset", kDaemonSets, daemon_sets, true, kOwnedSelector, ""},
      {"watch-deploymnt", kDeployments, deployments, true, kOwnedSelector, ""},
      {"watch-statefuls", kStatefulSets, stateful_sets, true, kOwnedSelector, ""},
      {"watch-services", kServices, services, true, kOwnedSelector, ""},
      {"watch-agentpods", kPods, agent_pods, true, kAgentPodSelector, ""},
      {"watch-events", kEvents, refused_pods, true, "", kRefusedPodsSelector},
  };
  for (const Watch& watch : watches) {
    ReflectorOptions options;
    options.resource = watch.resource;
    if (watch.own) options.ns = ns_;
    options.label_selector = watch.label_selector;
    options.field_selector = watch.field_selector;
    Start(watch.thread, std::move(options), watch.sink, client, clock);
  }
  if (ReadsNamespaces()) {
    Start("watch-pods", {.resource = kPods}, pods, client, clock);
    Start("watch-namespces", {.resource = kNamespaces, .metadata_only = true}, namespaces, client,
          clock);
  }
  for (const std::string& ns : watched_) {
    ObjectSink& sink = *pod_sinks_.emplace_back(pods.SinkOf(ns));
    Start("watch-pods", {.resource = kPods, .ns = ns}, sink, client, clock);
  }
}

void ClusterCache::Start(const char* thread, ReflectorOptions options, ObjectSink& sink,
                         RestClient& client, const Clock& clock) {
  Reflector& reflector = *reflectors_.emplace_back(
      std::make_unique<Reflector>(client, std::move(options), sink, clock, metrics_));
  threads_.push_back(
      StartThread(thread, [&reflector](const std::stop_token& stop) { reflector.Run(stop); }));
}

void ClusterCache::Stop() {
  for (std::jthread& thread : threads_)
    thread.request_stop();  // all at once, then wait
  threads_.clear();
  secrets.Stop();
}

bool ClusterCache::synced() const {
  return !reflectors_.empty() && std::ranges::all_of(reflectors_, [](const auto& reflector) {
    return reflector->synced();
  });
}

std::string ClusterCache::SeenVersion(const Resource& kind) const {
  for (const auto& reflector : reflectors_) {
    if (reflector->resource().plural == kind.plural) return reflector->seen_version();
  }
  return "";
}

}  // namespace flamefleet
