// SPDX-License-Identifier: Apache-2.0
// ClusterCache: everything that the operator knows of the cluster, one store per kind, each kept
// by one list and watch.
//
// Thread: Start and the destructor from one thread; the stores see Store. Threads inside: one per
// kind, called watch-...
// Bounds: pods of the whole cluster or of some namespaces, pruned; labels of namespaces; our kinds;
// and of the operator's namespace the objects that carry its labels, events of DaemonSets, and the
// Secrets that backends name.
// Errors: none; a kind that cannot be listed is tried again, and synced() stays false.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "operator/api/agent_pod.h"
#include "operator/api/agent_pool.h"
#include "operator/api/namespace.h"
#include "operator/api/object_event.h"
#include "operator/api/profiling_backend.h"
#include "operator/api/profiling_target.h"
#include "operator/api/workload.h"
#include "operator/cache/pod_store.h"
#include "operator/cache/secret_watcher.h"
#include "operator/cache/store.h"
#include "operator/kube/owned_fields.h"
#include "operator/kube/reflector.h"
#include "operator/kube/rest_client.h"

namespace flamefleet {

// An object that the operator made, and which of its fields are still as it applied them.
struct OwnedWorkload : api::Workload {
  OwnedFields owned;
  friend bool operator==(const OwnedWorkload&, const OwnedWorkload&) = default;
};

class ClusterCache {
 private:
  Mutex mutex_;  // of all stores; first, they refer to it
  Metrics& metrics_;

 public:
  // `ns` is the operator's own namespace. `watched`: the pods of these namespaces and of its own
  // alone, and no Namespaces; empty: those of the cluster.
  ClusterCache(std::string ns, Metrics& metrics, const std::vector<std::string>& watched = {});
  ~ClusterCache();
  ClusterCache(const ClusterCache&) = delete;
  ClusterCache& operator=(const ClusterCache&) = delete;

  PodStore pods;
  Store<api::ProfilingTarget> targets;
  Store<api::ProfilingBackend> backends;
  Store<api::AgentPool> pools;
  Store<OwnedWorkload> daemon_sets;
  Store<OwnedWorkload> deployments;
  Store<OwnedWorkload> stateful_sets;
  Store<OwnedWorkload> services;  // only meta, labels and owned are set
  Store<api::Namespace> namespaces;
  Store<api::AgentPod> agent_pods;
  Store<api::ObjectEvent> refused_pods;  // why pods of DaemonSets are not created

  SecretWatcher secrets;  // what it watches is told by who listens to backends

  // Pods of this namespace are seen, if there are any.
  bool Watches(const std::string& ns) const { return watched_.empty() || watched_.contains(ns); }
  // Namespaces are seen, with their labels.
  bool ReadsNamespaces() const { return watched_.empty(); }
  // The namespaces whose pods are seen; empty: all.
  const std::set<std::string>& watched() const { return watched_; }

  // Begins to fill the stores; listeners are set before. References outlive this object.
  void Start(RestClient& client, const Clock& clock);
  void Stop();
  // Each store has been filled once.
  bool synced() const;
  // The version up to which the store of this kind has seen everything; empty: there is no store of
  // it, or no list yet.
  std::string SeenVersion(const Resource& kind) const;

 private:
  // Begins to fill `sink` with the objects that `options` select.
  void Start(const char* thread, ReflectorOptions options, ObjectSink& sink, RestClient& client,
             const Clock& clock);

  const std::string ns_;
  std::set<std::string> watched_;
  std::vector<std::unique_ptr<ObjectSink>> pod_sinks_;  // one per watched namespace
  std::vector<std::unique_ptr<Reflector>> reflectors_;
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace flamefleet
