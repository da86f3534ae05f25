// SPDX-License-Identifier: Apache-2.0
// The controllers: each gathers what is, has operator/plan say what should be, and has
// operator/apply make it so. No decision is taken here.
//
//   pool/NAME         AgentPool         -> DaemonSet, status
//   backend/NAME      ProfilingBackend  -> keys, workload and Service of a managed store, status
//   target/NS/NAME    ProfilingTarget   -> status
//   node/NAME         node              -> the assignment of its agent
//
// Thread: the worker's. Errors: those of the writes; Worker tries again.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "operator/apply/applier.h"
#include "operator/apply/event_recorder.h"
#include "operator/apply/status_writer.h"
#include "operator/cache/cluster_cache.h"
#include "operator/plan/fleet.h"
#include "operator/plan/objects.h"
#include "operator/plan/status.h"
#include "operator/pod_sums.h"
#include "operator/runtime/worker.h"

namespace flamefleet {

namespace control {
class ControlServer;
}
namespace security {
class StoreKeys;
}

// What all controllers work with; everything outlives them.
struct ControllerContext {
  const ClusterCache& cache;
  control::ControlServer& agents;
  // By node, as the node controller set them last.
  std::map<std::string, std::shared_ptr<const plan::NodeAssignment>>& assignments;
  PodSums& pod_sums;
  Applier& applier;
  StatusWriter& status;
  EventRecorder& events;
  security::StoreKeys& store_keys;
  const Clock& clock;
  plan::ObjectSettings settings;
  int64_t started_ns = 0;  // monotonic, when agents could connect first
};

// How long after the start agents have time to come back before their silence counts.
inline constexpr std::chrono::seconds kSettleTime{30};
// Time alone changes a status while an agent is away; so such objects are looked at again.
inline constexpr std::chrono::seconds kRecheckInterval{15};
// The certificate of a managed store is looked at; it is renewed a month before its end.
inline constexpr std::chrono::hours kKeysInterval{1};
// While agents are rolled out a node has none for a moment, which is nothing to tell its pods.
inline constexpr std::chrono::minutes kAgentPatience{1};
// Events that are still true are said again well before the API server forgets them.
inline constexpr std::chrono::nanoseconds kSayAgain = EventRecorder::kRefresh / 2;

class PoolController final : public Controller {
 public:
  explicit PoolController(const ControllerContext& context) : context_(context) {}
  std::string name() const override { return "pool"; }
  Result<Outcome> Reconcile(const std::string& object, const std::stop_token& stop) override;
  // The configuration of the pool's agents; once for each pool before agents are served.
  void Configure(const api::AgentPool& pool);

 private:
  const ControllerContext& context_;
};

class BackendController final : public Controller {
 public:
  explicit BackendController(const ControllerContext& context) : context_(context) {}
  std::string name() const override { return "backend"; }
  Result<Outcome> Reconcile(const std::string& object, const std::stop_token& stop) override;

 private:
  Status ApplyStore(const api::ProfilingBackend& backend, const std::stop_token& stop);
  Status DeleteStore(const std::string& backend, const std::stop_token& stop);
  Status DeleteWorkload(const std::string& backend, bool with_volume, const std::stop_token& stop);

  const ControllerContext& context_;
};

class TargetController final : public Controller {
 public:
  explicit TargetController(const ControllerContext& context) : context_(context) {}
  std::string name() const override { return "target"; }
  Result<Outcome> Reconcile(const std::string& object, const std::stop_token& stop) override;

 private:
  const ControllerContext& context_;
};

class NodeController final : public Controller {
 public:
  explicit NodeController(const ControllerContext& context) : context_(context) {}
  std::string name() const override { return "node"; }
  Result<Outcome> Reconcile(const std::string& object, const std::stop_token& stop) override;
  // The assignment of a node; once for each node before agents are served. Pods whose annotations
  // bring them nothing are told why in an Event; when that is to be said again is the outcome.
  Outcome Assign(const std::string& node);

 private:
  // For how long yet it is no news that the node has no agent, which it has not now.
  std::chrono::nanoseconds PatienceWith(const std::string& node);

  const ControllerContext& context_;
  // Of nodes without an agent that have pods which ask for one, since when; monotonic.
  std::map<std::string, int64_t> without_agent_since_ns_;
};

}  // namespace flamefleet
