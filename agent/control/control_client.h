// SPDX-License-Identifier: Apache-2.0
// ControlClient: the agent's end of the control channel (proto/fleet/control.proto).
//
// It says Hello, takes the snapshot and deltas into force and acknowledges them, and reports health
// soon after it changed and at least every kReportInterval. When the stream ends it connects again
// after a back-off; what was in force stays in force meanwhile.
//
// TLS only: it trusts the authorities of `trust_file` and shows the service-account token of
// `token_file`. Both are replaced by the kubelet; they are read for each connection, and a newer
// token is sent on the open stream.
//
// Thread: Create and the destructor from one thread. It owns "ff-control" (connects, reads, calls
//         `apply`) and, while connected, "ff-report" (calls `report`).
// Bounds: messages of kMaxMessageBytes; nothing is queued.
// Errors: none; a stream that ended is logged once and tried again.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "agent/control/report.h"
#include "base/metrics.h"
#include "proto/fleet/control.pb.h"

namespace flamefleet::agent {

struct ControlOptions {
  std::string operator_address;  // HOST:PORT
  std::string node;
  std::string pool;
  std::string pod_name;
  std::string trust_file;  // PEM certificates
  std::string token_file;
};

class ControlClient {
 public:
  // Takes a message into force. An error ends the stream, so that a new snapshot comes.
  using Apply = std::function<Status(const fleet::v1alpha1::OperatorMessage&)>;
  // What is true now.
  using MakeReport = std::function<fleet::v1alpha1::Report()>;

  // Connects in the background. `health` wakes the reporter and must outlive it, as `metrics`.
  ControlClient(const ControlOptions& options, CollectionHealthBook* health, Metrics* metrics,
                Apply apply, MakeReport report);
  ~ControlClient();
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamefleet::agent
