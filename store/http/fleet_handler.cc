// SPDX-License-Identifier: Apache-2.0
#include "store/http/fleet_handler.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace flamefleet::store {
namespace {

HttpServerResponse Text(int status, const std::string& text) {
  return {.status = status, .body = text + "\n"};
}

}  // namespace

HttpServerResponse FleetHandler::Handle(const HttpServerRequest& request) {
  if (request.method == "POST") return Keep(request);
  if (request.method == "GET") return Show();
  return {.status = 405, .body = "use GET\n", .headers = {{"Allow", "GET, POST"}}};
}

HttpServerResponse FleetHandler::Keep(const HttpServerRequest& request) {
  if (request.body.size() > kMaxFleetBytes) {
    return Text(413, "fleet: more than " + std::to_string(kMaxFleetBytes) + " bytes");
  }
  if (request.body.empty() || request.body[0] != '{' || !nlohmann::json::accept(request.body)) {
    return Text(400, "fleet: want a JSON object, as the operator sends it");
  }
  const MutexLock lock(&mutex_);
  fleet_ = request.body;
  received_ns_ = clock_->WallNanos();
  return {.status = 204, .content_type = ""};
}

HttpServerResponse FleetHandler::Show() const {
  const MutexLock lock(&mutex_);
  if (fleet_.empty()) return Text(404, "no operator has told this store about its fleet");
  const int64_t age_ns = std::max<int64_t>(0, clock_->WallNanos() - received_ns_);
  return {.content_type = "application/json",
          .body = "{\"received\":\"" + FormatRfc3339(received_ns_) + "\",\"ageSeconds\":" +
                  std::to_string(age_ns / kNanosPerSecond) + ",\"fleet\":" + fleet_ + "}\n"};
}

}  // namespace flamefleet::store
