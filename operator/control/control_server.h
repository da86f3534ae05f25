// SPDX-License-Identifier: Apache-2.0
// ControlServer: the operator's side of proto/fleet/control.proto. One stream per agent; what a
// node should do goes out, what its agent reports is kept. TLS only; an agent is served once its
// token was checked, and what the node of that token has to do.
//
// Thread:  all methods from any thread, Listen once; internally locked.
//          The handler is called from gRPC's threads, without the lock, and must not block. It owns
//          "review-N" (kReviewers, which check tokens) and "sweep". No thread per stream.
// Bounds:  AgentHub's; kReviewers tokens are checked at a time, the others wait; messages of agents
//          of at most kMaxMessageBytes; a node that is gone is forgotten after a while.
// Errors:  kUnavailable when the address cannot be listened on. A stream that breaks the protocol
//          ends with INVALID_ARGUMENT; the older of two streams of one agent with ABORTED; one that
//          may not be served with UNAUTHENTICATED or PERMISSION_DENIED, counted by reason.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "base/tls/certificate.h"
#include "operator/plan/fleet.h"
#include "operator/security/admission.h"

namespace flamefleet::control {

class ControlServer {
 public:
  static constexpr int kMaxMessageBytes = 4 << 20;
  static constexpr int kReviewers = 8;

  // Called with the node whose report changed, or whose agent came or went.
  using ChangeHandler = std::function<void(const std::string& node)>;

  ControlServer(const Clock& clock, Metrics& metrics, security::Authenticate authenticate,
                ChangeHandler on_change);
  // Closes the port and ends all streams.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // What agents are shown from the next connection on. Before Listen.
  void SetCertificate(CertificatePair pair);

  // Call it once the assignments of all nodes are set: a node without one is told to do nothing.
  // `address` as "0.0.0.0:9443" or ":9443"; port 0 picks one.
  Status Listen(const std::string& address);
  int port() const;

  // All that agents of a pool share. An agent of a pool without a configuration is told nothing.
  void SetConfig(const std::string& pool, plan::AgentConfig config);
  // All work of a node; empty: none.
  // For its agent of `pool`; as long as there is none for another.
  // What is kept of it, which is never changed; nullptr: nothing.
  std::shared_ptr<const plan::NodeAssignment> SetAssignment(const std::string& node,
                                                            plan::NodeAssignment assignment,
                                                            const std::string& pool = "");

  // nullptr: no agent of this node since the server began, or not for long.
  std::shared_ptr<const plan::NodeReport> ReportOf(const std::string& node) const;
  // Nodes with a report.
  std::vector<std::string> Nodes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamefleet::control
