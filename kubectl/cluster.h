// SPDX-License-Identifier: Apache-2.0
// Cluster: the API server as a user of kubectl reaches it, and the flags that say which one.
//
// Thread: one; calls block. Bounds: kPageSize objects are held as JSON at a time; an answer of at
// most 16 MiB. Errors: those of RestClient; kUnimplemented when the cluster has no kind of ours.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/flags.h"
#include "base/metrics.h"
#include "operator/kube/rest_client.h"

namespace flamefleet::kubectl {

inline constexpr int kPageSize = 200;

struct ClusterFlags {
  std::string kubeconfig;
  std::string context;
  std::string ns;  // empty: that of the context
  std::string system_ns = "flamefleet-system";
  std::chrono::nanoseconds timeout{std::chrono::seconds(30)};

  void AddTo(Flags& flags);
};

class Cluster {
 public:
  static Result<std::unique_ptr<Cluster>> Connect(const ClusterFlags& flags);

  // Of --namespace, else of the context, else "default".
  const std::string& ns() const { return ns_; }
  // Where Flamefleet runs.
  const std::string& system_ns() const { return system_ns_; }
  RestClient& client() { return *client_; }

  Result<nlohmann::json> Get(const Resource& resource, const std::string& ns,
                             const std::string& name);
  // Gives each object to `take`; without a namespace: those of all. `query`: a part of the query,
  // such as "labelSelector=app".
  Status List(const Resource& resource, const std::string& ns, const std::string& query,
              const std::function<void(const nlohmann::json& object)>& take);

 private:
  Cluster() = default;

  Metrics metrics_;
  std::string ns_;
  std::string system_ns_;
  std::unique_ptr<RestClient> client_;
};

}  // namespace flamefleet::kubectl
