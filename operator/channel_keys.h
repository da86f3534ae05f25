// SPDX-License-Identifier: Apache-2.0
// ChannelKeys: keeps the keys of the control channel in date, in the cluster and in the server.
//
// Thread: Create and the destructor from one thread; it owns "keys".
// Errors: Begin: kCancelled after stop was requested; until the keys are there it tries again. A
//         later failure is logged and tried again: what is served is good for weeks.
#pragma once

#include <string>
#include <thread>

#include "base/clock.h"
#include "base/metrics.h"
#include "operator/control/control_server.h"
#include "operator/security/tls_store.h"

namespace flamefleet {

class ChannelKeys {
 public:
  static constexpr std::chrono::minutes kCheckInterval{1};
  static constexpr std::chrono::seconds kRetryInterval{1};  // until the first success

  // `server` must outlive this.
  ChannelKeys(security::TlsStore store, control::ControlServer& server, Metrics& metrics);

  // Returns when the server has its certificate.
  Status Begin(const std::stop_token& stop);

 private:
  Status Sync(const std::stop_token& stop);

  security::TlsStore store_;
  control::ControlServer& server_;
  GaugeMetric expiry_;
  std::string logged_;  // the failure that was logged last
  std::jthread thread_;
};

}  // namespace flamefleet
