// SPDX-License-Identifier: Apache-2.0
// ProfilingBackend: where profiles go. Field by field as in crds/profilingbackends.yaml.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "operator/api/kinds.h"

namespace flamefleet::api {

// Requests and limits by resource name; quantities as written ("50m", "1Gi").
struct Resources {
  StringMap requests;
  StringMap limits;

  friend bool operator==(const Resources&, const Resources&) = default;
};

enum class BackendType {
  kPyroscope,  // a server that somebody else runs, by the Pyroscope push API
  kParca,      // a server that somebody else runs, by Parca's WriteRaw
  kOtlp,       // a server that somebody else runs, by OTLP profiles over gRPC
  kStore,      // our embedded store: run by the operator when managed, else at `endpoint`
};

// A key of a Secret of the operator's namespace.
struct SecretKey {
  std::string secret;
  std::string key;

  friend auto operator<=>(const SecretKey&, const SecretKey&) = default;
};

struct BackendTls {
  std::optional<SecretKey> ca;  // PEM; absent: the system's roots
  std::string server_name;      // empty: the endpoint's host
  bool insecure_skip_verify = false;

  friend bool operator==(const BackendTls&, const BackendTls&) = default;
};

// At most one of the two.
struct BackendAuth {
  std::string basic_secret;  // with the keys username and password; empty: none
  std::optional<SecretKey> bearer_token;

  friend bool operator==(const BackendAuth&, const BackendAuth&) = default;
};

// Of each agent; 0: none.
struct BackendLimits {
  int64_t bytes_per_second = 0;   // of profiles before compression
  int64_t max_profile_bytes = 0;  // before compression

  friend bool operator==(const BackendLimits&, const BackendLimits&) = default;
};

// Profiles that wait for a backend.
struct Backlog {
  int64_t profiles = 0;
  int64_t bytes = 0;
  int64_t oldest_ns = 0;  // time of the oldest, wall clock; 0: none waits

  friend bool operator==(const Backlog&, const Backlog&) = default;
};

struct ManagedStore {
  // A volume of its own; absent: what the store keeps goes with its pod.
  struct Volume {
    std::string size;  // as written: "10Gi"
    int64_t size_bytes = 0;
    std::string storage_class;  // empty: the cluster's default

    friend bool operator==(const Volume&, const Volume&) = default;
  };
  std::optional<Volume> volume;
  int64_t retention_ns = 0;
  Resources resources;

  friend bool operator==(const ManagedStore&, const ManagedStore&) = default;
};

struct ProfilingBackendSpec {
  bool is_default = false;
  BackendType type = BackendType::kStore;
  std::string endpoint;  // empty with a managed store
  std::optional<ManagedStore> managed_store;
  std::string tenant_id;  // empty: none
  BackendTls tls;
  BackendAuth auth;
  BackendLimits limits;
  std::optional<int64_t> ingestion_window_ns;  // absent: what the type is known for

  friend bool operator==(const ProfilingBackendSpec&, const ProfilingBackendSpec&) = default;
};

struct ProfilingBackendStatus {
  struct Agents {
    int64_t delivering = 0;
    int64_t failing = 0;
    friend bool operator==(const Agents&, const Agents&) = default;
  };
  int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  std::string endpoint;  // where agents send profiles
  Agents agents;
  Backlog backlog;

  friend bool operator==(const ProfilingBackendStatus&, const ProfilingBackendStatus&) = default;
};

struct ProfilingBackend {
  ObjectMeta meta;
  ProfilingBackendSpec spec;
  ProfilingBackendStatus status;

  friend bool operator==(const ProfilingBackend&, const ProfilingBackend&) = default;
};

// As DecodeProfilingTarget.
Result<ProfilingBackend> DecodeProfilingBackend(const nlohmann::json& object);
nlohmann::json EncodeStatus(const ProfilingBackendStatus& status);

}  // namespace flamefleet::api
