// SPDX-License-Identifier: Apache-2.0
// What the agent serves over HTTP: /metrics, /healthz, /readyz.
//
// /readyz is 200 while samples flow or none are wanted; else 503 and the reason.
//
// Thread: any; the handler runs on the server's threads. `metrics` must outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/http/server.h"
#include "base/metrics.h"
#include "base/status.h"

namespace flamefleet::agent {

// OK when ready, else an error whose message says what is missing.
using ReadinessCheck = std::function<Status()>;

Result<std::unique_ptr<HttpServer>> ServeEndpoints(const std::string& listen,
                                                   const Metrics* metrics, ReadinessCheck ready);

// The rule: CPU targets are wanted and the ring was not drained for kMaxDrainAge: not ready.
struct SamplingState {
  bool wanted = false;
  bool running = false;
  int64_t nanos_since_drain = 0;
};
Status JudgeReadiness(const SamplingState& state);

}  // namespace flamefleet::agent
