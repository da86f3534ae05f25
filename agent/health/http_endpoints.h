// SPDX-License-Identifier: Apache-2.0
// What the agent serves over HTTP: /metrics, /healthz, /readyz.
//
// /healthz is 200 while every stage gets on with its work; else 503 and the name of the one that
// does not, so that the kubelet restarts the agent. /readyz is 200 while what is wanted is sampled
// and delivered; else 503 and the reason. /readyz?exclude=delivery, as Kubernetes itself calls such
// a thing, leaves out what is the backend's fault: the kubelet asks that, for a backend that is
// away must not stop a rolling update of the agents, and the spool keeps what they collect.
//
// Thread: any; the handler runs on the server's threads. `metrics` must outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/health/collection_health.h"
#include "base/http/server.h"
#include "base/metrics.h"
#include "base/status.h"

namespace flamefleet::agent {

// Each OK, or an error whose message says what is missing.
struct Checks {
  std::function<Status()> healthy;
  std::function<Status()> sampled;
  std::function<Status()> delivered;
};

Result<std::unique_ptr<HttpServer>> ServeEndpoints(const std::string& listen,
                                                   const Metrics* metrics, Checks checks);

// The rule: CPU targets are wanted and the ring was not drained for kMaxDrainAge: not ready.
struct SamplingState {
  bool wanted = false;
  bool running = false;
  int64_t nanos_since_drain = 0;
};
Status JudgeReadiness(const SamplingState& state);

// The rule: a backend does not take what is collected, and no collection is delivered.
Status JudgeDelivery(const std::vector<CollectionStatus>& collections);

}  // namespace flamefleet::agent
