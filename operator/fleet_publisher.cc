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
  const std::vector<std::string> endpoints = endpoints_();
  std::erase_if(stores_, [&](const auto& known) {
    return std::ranges::find(endpoints, known.first) == endpoints.end();
  });
  if (endpoints.empty()) return;
  const std::string report = report_();
  for (const std::string& endpoint : endpoints) {
    Store& store = stores_[endpoint];
    const Status told = Tell(endpoint, store, report, stop);
    if (told.ok()) {
      store.failures = 0;
    } else if (++store.failures == kFailuresWorthAWord) {
      Log(LogLevel::kWarn, "the store's fleet page is not up to date",
          {{"store", endpoint}, {"error", told}});
    }
  }
}

Status FleetPublisher::Tell(const std::string& endpoint, Store& store, const std::string& report,
                            const std::stop_token& stop) {
  if (!store.client) {
    FF_ASSIGN_OR_RETURN(store.client, HttpClient::Create({.base_url = endpoint}));
  }
  FF_ASSIGN_OR_RETURN(const HttpResponse response,
                      store.client->Send({.method = "POST",
                                          .target = "/fleet",
                                          .headers = {{"Content-Type", "application/json"}},
                                          .body = report,
                                          .idle_timeout = kTimeout,
                                          .total_timeout = kTimeout},
                                         stop));
  if (response.status == 204) return OkStatus();
  return UnavailableError("POST " + endpoint + "/fleet: answered " +
                          std::to_string(response.status) + ": " + response.body.substr(0, 200));
}

}  // namespace flamefleet
