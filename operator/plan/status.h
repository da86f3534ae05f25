// SPDX-License-Identifier: Apache-2.0
// The status of the three kinds: what was seen, judged. Ready is true only when profiles of all
// matched pods were reported as delivered.
//
// Thread: any; pure: the time is an input, and lastTransitionTime moves only when a condition's
// status does. Conditions say the same to kubectl wait and to kstatus: while Ready is not true,
// one of Reconciling and Stalled is. What did not change comes out equal to the status before, so
// that nothing is written. Bounds: kMaxFailingPods, kMaxWarnings, kMaxProblemNodes entries;
// messages of at most kMaxMessage bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/agent_pod.h"
#include "operator/api/agent_pool.h"
#include "operator/api/object_event.h"
#include "operator/api/profiling_backend.h"
#include "operator/api/profiling_target.h"
#include "operator/api/workload.h"
#include "operator/plan/backend_table.h"
#include "operator/plan/fleet.h"
#include "operator/plan/pod_health.h"

namespace flamefleet::plan {

inline constexpr size_t kMaxFailingPods = 10;
inline constexpr size_t kMaxWarnings = 10;
inline constexpr size_t kMaxProblemNodes = 20;
inline constexpr size_t kMaxMessage = 512;
// lastProfileTime stays while it is younger than this: it must not cause a write per profile.
inline constexpr int64_t kLastProfileStepNs = 300'000'000'000;

// Fewer say nothing of a share in percent.
inline constexpr int64_t kLeastStacks = 1000;

// A target that cannot be served is Stalled after this, and Reconciling before.
inline constexpr int64_t kStalledAfterNs = 60'000'000'000;
inline constexpr std::string_view kReconciling = "Reconciling";
inline constexpr std::string_view kStalled = "Stalled";

struct StatusInput {
  int64_t now_ns = 0;  // wall clock
  // False shortly after the operator began, while agents are still coming back: a status that would
  // need an agent that has not been heard yet stays as it is.
  bool settled = true;
};

// `pods` are the live pods that the target matches. `not_watched`: why no pod of the target's
// namespace can be seen; empty: they are.
api::ProfilingTargetStatus TargetStatus(const api::ProfilingTarget& target,
                                        const std::vector<PodView>& pods,
                                        const BackendTable& backends, const StatusInput& input,
                                        const std::string& not_watched = "");

// What the pods of one node come to in the status of the pool that has the node: small enough to be
// kept for each node of a cluster, so that not all pods are planned anew when one of them changes.
struct NodePods {
  api::PodCounts counts;
  bool unknown = false;  // some pod's agent has not said anything yet
  // At most kMaxFailingPods and kMaxWarnings. since_ns is what the agent says; 0: it does not.
  std::vector<api::FailingPod> failing;
  std::vector<api::PodWarning> warnings;

  friend bool operator==(const NodePods&, const NodePods&) = default;
};
// Of `pods`, live pods of one node, those count that annotations or the scope of the pool opt in.
NodePods SumUpPods(const std::vector<PodView>& pods, int64_t now_ns);

struct PoolView {
  const api::Workload* daemon_set = nullptr;       // nullptr: there is none yet
  std::string refusal;                             // why the API server does not take the DaemonSet
  const api::ObjectEvent* refused_pods = nullptr;  // the last one about that DaemonSet
  std::vector<const api::AgentPod*> agent_pods;    // of that DaemonSet
  struct Node {
    std::string name;
    const NodeReport* report = nullptr;
    bool agent_ready = false;  // the readiness of the agent's pod
    std::string owner;         // the older pool that keeps the node; empty: this one has it
  };
  std::vector<Node> nodes;            // with a pod of the pool's DaemonSet, by name
  std::vector<const NodePods*> pods;  // of its own nodes
  // Why processes of the nodes are not profiled, which scope Node asks for.
  std::optional<Problem> host_problem;
  bool selector_unread = false;  // the labels that spec.optIn.namespaceSelector selects by
};
api::AgentPoolStatus PoolStatus(const api::AgentPool& pool, const PoolView& view,
                                const StatusInput& input);

struct BackendView {
  const api::Workload* workload = nullptr;  // of the managed store; nullptr: there is none (yet)
  std::string apply_error;                  // of the managed store's objects; empty: none
  const Problem* problem = nullptr;         // with its credentials; nullptr: none
  std::string endpoint;
  std::string default_name;  // of the cluster
  struct Agent {
    std::string node;
    // Health of the collections that go to this backend.
    std::vector<const CollectionHealth*> collections;
  };
  std::vector<Agent> agents;  // whose report is current and has such collections
  api::Backlog backlog;       // of all agents
};
// Adds what one agent has waiting.
void AddBacklog(const api::Backlog& of_agent, api::Backlog& sum);
// What a node's agent says about the collections of its assignment that go to `backend`.
std::vector<const CollectionHealth*> HealthOf(const std::string& backend,
                                              const NodeAssignment& assignment,
                                              const NodeReport& report);
api::ProfilingBackendStatus BackendStatus(const api::ProfilingBackend& backend,
                                          const BackendView& view, const StatusInput& input);

}  // namespace flamefleet::plan
