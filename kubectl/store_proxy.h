// SPDX-License-Identifier: Apache-2.0
// Profiles of a workload, asked of the managed store that has them, through the API server's proxy
// of its Service: no port-forward, and the rights of the user decide, who reads the store's
// credential for readers from its Secret.
//
// Thread: one; calls block. Errors: kNotFound no profiles; kFailedPrecondition no store that could
// be asked; kPermissionDenied with the role that is missing.
#pragma once

#include <chrono>
#include <string>

#include "kubectl/cluster.h"
#include "kubectl/workload_name.h"

namespace flamefleet::kubectl {

struct ProfileQuery {
  std::string ns;
  WorkloadName workload;
  std::string type = "cpu";  // of a target's profiles, or as the store has it: "memory:alloc_space"
  std::chrono::nanoseconds since{std::chrono::minutes(15)};
  std::string backend;  // empty: where the workload's profiles go

  // "cpu of Deployment shop/payments, last 15m"
  std::string Text() const;
};

// What the store is asked: `process_cpu{namespace="shop",pod=~"payments-..."}`. Pods that are gone
// are meant as well, so it goes by how Kubernetes names the pods of a workload. kInvalidArgument: a
// type that is no name.
Result<std::string> SelectorOf(const ProfileQuery& query);

// The name of the ProfilingBackend whose managed store is to be asked; of the default one.
Result<std::string> FindStore(Cluster& cluster, const ProfileQuery& query);
Result<std::string> FindDefaultStore(Cluster& cluster);

// The answer of `route` ("top", "pprof"); `parameters` are added to its query: "&limit=20".
Result<std::string> AskStore(Cluster& cluster, const std::string& backend, const std::string& route,
                             const ProfileQuery& query, const std::string& parameters);

}  // namespace flamefleet::kubectl
