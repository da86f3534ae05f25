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
  kStore,      // our embedded store: run by the operator when managed, else at `endpoint`
};

struct ManagedStore {
  int64_t retention_ns = 0;
  Resources resources;

  friend bool operator==(const ManagedStore&, const ManagedStore&) = default;
};

struct ProfilingBackendSpec {
  bool is_default = false;
  BackendType type = BackendType::kStore;
  std::string endpoint;                       // empty with a managed store
  std::optional<ManagedStore> managed_store;  // storage is ephemeral: the only kind served so far

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
