// SPDX-License-Identifier: Apache-2.0
// FleetHandler: what the operator said last about pools, backends, targets and failing pods, kept
// in memory for the UI. The store asks nobody for it and believes nothing of it: it is shown as it
// came.
//
//   POST /fleet   a JSON object, as operator/fleet_report.h makes it
//   GET  /fleet   {"received": RFC 3339, "ageSeconds": N, "fleet": that object}; 404: none yet
//
// Thread: any. Bounds: kMaxFleetBytes. Errors: become a status code and a line of text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/http/server.h"
#include "base/mutex.h"

namespace flamefleet::store {

// The operator sends at most 1 MiB.
constexpr size_t kMaxFleetBytes = 2 << 20;

class FleetHandler {
 public:
  explicit FleetHandler(const Clock* clock) : clock_(clock) {}
  FleetHandler(const FleetHandler&) = delete;
  FleetHandler& operator=(const FleetHandler&) = delete;

  HttpServerResponse Handle(const HttpServerRequest& request);

 private:
  HttpServerResponse Keep(const HttpServerRequest& request);
  HttpServerResponse Show() const;

  const Clock* const clock_;
  mutable Mutex mutex_;
  std::string fleet_ FF_GUARDED_BY(mutex_);
  int64_t received_ns_ FF_GUARDED_BY(mutex_) = 0;
};

}  // namespace flamefleet::store
