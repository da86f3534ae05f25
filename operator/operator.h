// SPDX-License-Identifier: Apache-2.0
// Operator: the program, wired.
//
//   API server -> ClusterCache -> Triggers -> WorkQueue -> Worker -> controllers -> Applier,
//                                               ^                       |           StatusWriter
//                    agents -> ControlServer ---+  <--- assignments ----+
//
// Agents are served, and anything is written, only once the cache has been filled, as an empty
// cache must not tell anybody to stop, and only while this process leads (LeaderElector). Another
// replica stands by: its cache is kept, its agents' port is closed. It is ready all the same, else
// a roll-out of two replicas would never end; an agent that the Service sends to it is refused at
// once and tries again.
//
// Thread: Create, Run and the destructor from one thread. Threads inside: one watch per kind,
// `worker`, `lease`, `fleet`, those of HttpServer and ControlServer.
// Errors: Create: what keeps the operator from starting; Run: OK after stop was requested.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "operator/kube/client_config.h"
#include "operator/runtime/leader_elector.h"

namespace flamefleet {

struct OperatorOptions {
  ClientConfig client;
  std::string ns;     // where the operator, its agents and stores run
  std::string pod;    // the operator's own; needed only without `image`
  std::string image;  // of agents and stores; empty: that of the own pod
  // Namespaces whose pods are watched, beside `ns`; empty: all of the cluster.
  std::vector<std::string> watched;
  std::string listen;         // /healthz, /readyz, /metrics
  std::string debug_listen;   // /debug/state, on loopback only; empty: not served
  std::string agents_listen;  // the agents' control channel
  LeaseOptions lease;         // its namespace is `ns`
};

class Operator {
 public:
  static Result<std::unique_ptr<Operator>> Create(const OperatorOptions& options,
                                                  const Clock& clock);
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  Status Run(const std::stop_token& stop);

 private:
  class Impl;
  explicit Operator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamefleet
