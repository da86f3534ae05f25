// SPDX-License-Identifier: Apache-2.0
// What flows between the operator and its agents, as the plan sees it: an assignment per node goes
// out, a report per node comes back. operator/control turns both into messages of
// proto/fleet/control.proto.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/kinds.h"
#include "operator/api/profiling_backend.h"
#include "operator/api/profiling_target.h"

namespace flamefleet::plan {

using api::StringMap;

// CPU of one container, by eBPF.
struct ContainerAssignment {
  std::string name;
  std::string id;  // empty until it was started
  std::string backend;
  StringMap labels;
  bool thread_labels = false;  // samples have the labels thread_name and thread_id

  friend bool operator==(const ContainerAssignment&, const ContainerAssignment&) = default;
};

// pprof over HTTP, at most one per pod and profile type.
struct PullJob {
  ProfileType type = ProfileType::kCpu;
  int32_t port = 0;
  std::optional<api::PullTls> tls;  // absent: plain HTTP
  std::string path;
  StringMap parameters;
  int64_t interval_ns = 0;
  int64_t timeout_ns = 0;
  std::string container;  // empty when the port belongs to no container that declares it
  std::string backend;
  StringMap labels;

  friend bool operator==(const PullJob&, const PullJob&) = default;
};

struct PodAssignment {
  std::string uid;
  std::string ns;
  std::string name;
  std::string ip;  // empty until there is one
  std::vector<ContainerAssignment> containers;
  std::vector<PullJob> pulls;

  friend bool operator==(const PodAssignment&, const PodAssignment&) = default;
};

// The work of one node, by pod UID. The processes of the node that are in no container come as a
// pod and container with neither name nor id.
using NodeAssignment = std::map<std::string, PodAssignment>;

enum class BackendProtocol { kPyroscope, kParca, kOtlp };

struct Backend {
  std::string name;
  std::string endpoint;  // base URL
  std::string tenant_id;
  std::string ca_pem;       // empty: the system's roots
  std::string server_name;  // empty: the endpoint's host
  bool insecure_skip_verify = false;
  std::string authorization;        // value of the header; a secret
  bool hold = false;                // agents keep its profiles: its credentials are not known
  int64_t ingestion_window_ns = 0;  // 0: none is too old
  int64_t bytes_per_second = 0;     // of each agent; 0: no limit
  int64_t max_profile_bytes = 0;    // 0: no limit
  BackendProtocol protocol = BackendProtocol::kPyroscope;

  friend bool operator==(const Backend&, const Backend&) = default;
};

// What all agents of a pool share.
struct AgentConfig {
  int32_t sampling_frequency_hz = 0;
  int32_t stack_depth = 0;
  bool inlines = true;
  std::vector<std::string> debuginfod_urls;
  std::vector<Backend> backends;      // by name
  int64_t cpu_budget_millicores = 0;  // of each agent; 0: none

  friend bool operator==(const AgentConfig&, const AgentConfig&) = default;
};

enum class CollectionState {
  kWaiting,     // in force, nothing delivered yet
  kDelivering,  // the backend took a profile of the last windows
  kIdle,        // works; the container used no CPU since
  kFailing,
};

// One ContainerAssignment or PullJob in a report.
struct CollectionId {
  std::string pod_uid;
  std::string container;
  ProfileType type = ProfileType::kCpu;

  friend auto operator<=>(const CollectionId&, const CollectionId&) = default;
};

struct CollectionHealth {
  CollectionState state = CollectionState::kWaiting;
  std::string reason;  // one of base/reasons.h
  std::string message;
  int64_t last_delivered_ns = 0;  // wall clock; 0: never
  int64_t failing_since_ns = 0;   // wall clock; 0: not failing
  // User stacks since the agent began, by how they ended: names of base/stack_ends.h.
  std::map<std::string, int64_t> stacks;

  friend bool operator==(const CollectionHealth&, const CollectionHealth&) = default;
};

struct NodeProblem {
  std::string reason;
  std::string message;

  friend bool operator==(const NodeProblem&, const NodeProblem&) = default;
};

// The newest that the agent of one node said.
struct NodeReport {
  std::string pool;
  bool connected = false;
  int64_t disconnected_since_ns = 0;  // wall clock; 0 while connected
  bool received = false;  // a report came on this or an earlier stream; else the rest is empty
  bool sampling = false;  // eBPF sampling runs
  std::vector<NodeProblem> problems;
  std::map<CollectionId, CollectionHealth> collections;
  std::map<std::string, api::Backlog> backlogs;  // by backend

  friend bool operator==(const NodeReport&, const NodeReport&) = default;
};

}  // namespace flamefleet::plan
