// SPDX-License-Identifier: Apache-2.0
#include "agent/health/http_endpoints.h"

#include <utility>

#include "base/clock.h"
#include "base/reasons.h"

namespace flamefleet::agent {
namespace {

// The ring is drained every 250 ms; this much later the drain is stuck.
constexpr int64_t kMaxDrainAge = 10 * kNanosPerSecond;
// Probes and scrapes of one node come from a few clients.
constexpr size_t kMaxConnections = 32;
constexpr size_t kMaxBodyBytes = 4 << 10;

HttpServerResponse Verdict(const Status& status) {
  if (status.ok()) return {.body = "ok\n"};
  return {.status = 503, .body = ErrorMessage(status) + "\n"};
}

Status Ready(const Checks& checks, const HttpServerRequest& request) {
  FF_RETURN_IF_ERROR(checks.sampled());
  const auto excluded = request.query.find("exclude");
  if (excluded != request.query.end() && excluded->second == "delivery") return OkStatus();
  return checks.delivered();
}

}  // namespace

Status JudgeReadiness(const SamplingState& state) {
  if (!state.wanted) return OkStatus();
  if (!state.running) {
    return FailedPreconditionError("eBPF sampling is wanted and does not run; the log says why");
  }
  if (state.nanos_since_drain > kMaxDrainAge) {
    return UnavailableError("no samples were read for " +
                            std::to_string(state.nanos_since_drain / kNanosPerSecond) + " s");
  }
  return OkStatus();
}

Status JudgeDelivery(const std::vector<CollectionStatus>& collections) {
  const CollectionStatus* refused = nullptr;
  for (const CollectionStatus& status : collections) {
    if (status.state == CollectionState::kDelivering) return OkStatus();
    if (status.reason == reasons::kBackendUnreachable ||
        status.reason == reasons::kBackendUnauthorized || status.reason == reasons::kBackendRefused)
      refused = &status;
  }
  if (refused == nullptr) return OkStatus();
  return UnavailableError("no profile is delivered: " + refused->message);
}

Result<std::unique_ptr<HttpServer>> ServeEndpoints(const std::string& listen,
                                                   const Metrics* metrics, Checks checks) {
  const HttpServerOptions options = {.listen = listen,
                                     .max_body_bytes = kMaxBodyBytes,
                                     .max_connections = kMaxConnections,
                                     .handler_threads = 1};
  return HttpServer::Create(
      options,
      [metrics,
       checks = std::move(checks)](const HttpServerRequest& request) -> HttpServerResponse {
        if (request.method != "GET") {
          return {.status = 405, .body = "only GET\n", .headers = {{"Allow", "GET, HEAD"}}};
        }
        if (request.path == "/metrics") {
          return {.content_type = "text/plain; version=0.0.4", .body = metrics->RenderText()};
        }
        if (request.path == "/healthz") return Verdict(checks.healthy());
        if (request.path == "/readyz") return Verdict(Ready(checks, request));
        return {.status = 404, .body = "not found: /metrics, /healthz, /readyz\n"};
      });
}

}  // namespace flamefleet::agent
