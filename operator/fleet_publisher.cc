// SPDX-License-Identifier: Apache-2.0
#include "operator/fleet_publisher.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "base/thread.h"

namespace flamefleet {
namespace {

// A store that starts, or whose node is drained, is away for less.
constexpr int kFailuresWorthAWord = 8;

}  // namespace

void FleetPublisher::Run(const std::stop_token& stop) {
  do {
    Publish(stop);
  } while (!WaitForStop(stop, kInterval));
}

void FleetPublisher::Publish(const std::stop_token& stop) {
  const std::vector<plan::Backend> backends = list_();
  std::erase_if(stores_, [&](const auto& known) {
    return std::ranges::find(backends, known.first, &plan::Backend::endpoint) == backends.end();
  });
  if (backends.empty()) return;
  const std::string report = report_();
  for (const plan::Backend& backend : backends) {
    Store& store = stores_[backend.endpoint];
    const Status told = Tell(backend, store, report, stop);
    if (told.ok()) {
      store.failures = 0;
    } else if (++store.failures == kFailuresWorthAWord) {
      Log(LogLevel::kWarn, "the store's fleet page is not up to date",
          {{"store", backend.endpoint}, {"error", told}});
    }
  }
}

Status FleetPublisher::Tell(const plan::Backend& backend, Store& store, const std::string& report,
                            const std::stop_token& stop) {
  if (backend.hold) return UnavailableError("POST " + backend.endpoint + "/fleet: no keys yet");
  if (!store.client || store.ca_pem != backend.ca_pem) {
    FF_ASSIGN_OR_RETURN(store.client, HttpClient::Create({.base_url = backend.endpoint,
                                                          .tls = {.ca_pem = backend.ca_pem}}));
    store.ca_pem = backend.ca_pem;
  }
  std::map<std::string, std::string> headers = {{"Content-Type", "application/json"}};
  if (!backend.authorization.empty()) headers["Authorization"] = backend.authorization;
  FF_ASSIGN_OR_RETURN(const HttpResponse response,
                      store.client->Send({.method = "POST",
                                          .target = "/fleet",
                                          .headers = std::move(headers),
                                          .body = report,
                                          .idle_timeout = kTimeout,
                                          .total_timeout = kTimeout},
                                         stop));
  if (response.status == 204) return OkStatus();
  return UnavailableError("POST " + backend.endpoint + "/fleet: answered " +
                          std::to_string(response.status) + ": " + response.body.substr(0, 200));
}

}  // namespace flamefleet
