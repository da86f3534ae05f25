// SPDX-License-Identifier: Apache-2.0
#include "operator/cache/cluster_cache.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/thread.h"

namespace flamefleet {
namespace {

using nlohmann::json;

constexpr const char* kOwnedSelector = "app.kubernetes.io/managed-by=flamefleet-operator";

GaugeMetric CountOf(Metrics& metrics, const Resource& resource) {
  return metrics.Gauge("flamefleet_operator_cached_objects", "Objects in the cache.",
                       {{"kind", std::string(resource.kind)}});
}

template <Result<api::Workload> (*kDecode)(const json&)>
Result<OwnedWorkload> DecodeOwned(const json& object) {
  FF_ASSIGN_OR_RETURN(api::Workload workload, kDecode(object));
  return OwnedWorkload{std::move(workload), ReadOwnedFields(object)};
}

}  // namespace

ClusterCache::ClusterCache(std::string ns, Metrics& metrics)
    : metrics_(metrics),
      pods(mutex_, CountOf(metrics, kPods)),
      targets(mutex_, api::DecodeProfilingTarget, CountOf(metrics, kProfilingTargets)),
      backends(mutex_, api::DecodeProfilingBackend, CountOf(metrics, kProfilingBackends)),
      pools(mutex_, api::DecodeAgentPool, CountOf(metrics, kAgentPools)),
      daemon_sets(mutex_, DecodeOwned<api::DecodeDaemonSet>, CountOf(metrics, kDaemonSets)),
      deployments(mutex_, DecodeOwned<api::DecodeDeployment>, CountOf(metrics, kDeployments)),
      // A Service has none of a workload's numbers; reading it as a DaemonSet takes its metadata.
      services(mutex_, DecodeOwned<api::DecodeDaemonSet>, CountOf(metrics, kServices)),
      ns_(std::move(ns)) {}

ClusterCache::~ClusterCache() {
  Stop();
}

void ClusterCache::Start(RestClient& client, const Clock& clock) {
  struct Watch {
    const char* thread;
    const Resource& resource;
    ObjectSink& sink;
    bool owned;  // only what the operator made, in its namespace
  };
  const Watch watches[] = {
      {"watch-pods", kPods, pods, false},
      {"watch-targets", kProfilingTargets, targets, false},
      {"watch-backends", kProfilingBackends, backends, false},
      {"watch-pools", kAgentPools, pools, false},
      {"watch-daemonset", kDaemonSets, daemon_sets, true},
      {"watch-deploymnt", kDeployments, deployments, true},
      {"watch-services", kServices, services, true},
  };
  for (const Watch& watch : watches) {
    ReflectorOptions options;
    options.resource = watch.resource;
    if (watch.owned) {
      options.ns = ns_;
      options.label_selector = kOwnedSelector;
    }
    Reflector& reflector = *reflectors_.emplace_back(
        std::make_unique<Reflector>(client, options, watch.sink, clock, metrics_));
    threads_.push_back(StartThread(
        watch.thread, [&reflector](const std::stop_token& stop) { reflector.Run(stop); }));
  }
}

void ClusterCache::Stop() {
  for (std::jthread& thread : threads_)
    thread.request_stop();  // all at once, then wait
  threads_.clear();
}

bool ClusterCache::synced() const {
  return !reflectors_.empty() && std::ranges::all_of(reflectors_, [](const auto& reflector) {
    return reflector->synced();
  });
}

}  // namespace flamefleet
