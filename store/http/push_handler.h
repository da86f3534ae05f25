// SPDX-License-Identifier: Apache-2.0
// PushHandler: POST /push.v1.PusherService/Push, Connect unary, with the status codes of Pyroscope.
//
//   200 stored, on disk            400 the request, a label or a profile is wrong: do not retry
//   413 too large: do not retry    415 not application/proto or application/json
//   501 a Content-Encoding other than gzip   503 busy, 507 the disk is full: retry later
//
// Thread: any, several at once.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/http/server.h"
#include "base/metrics.h"
#include "store/db/database.h"
#include "store/ingest/push.h"

namespace flamefleet::store {

class PushHandler {
 public:
  PushHandler(Database* database, const Clock* clock, Metrics* metrics);

  HttpServerResponse Handle(const HttpServerRequest& request);

 private:
  void CountRefused(const char* reason, size_t profiles);

  Database* const database_;
  const Clock* const clock_;
  PushLimits limits_;
  std::map<std::string, CounterMetric> refused_;  // by reason; complete from the start
};

}  // namespace flamefleet::store
