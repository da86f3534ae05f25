// SPDX-License-Identifier: Apache-2.0
// StatusWriter: writes the status of our kinds through the status subresource, with a field manager
// of its own, and seldom: numbers move all the time, the API server should not. What it is given is
// in the metrics of FleetGauges at once.
//
// Thread: one (the worker). Units: monotonic time of the clock. Bounds: at most one write per
// object in kMinInterval, unless a condition changes its status or reason; one remembered write per
// object. Errors: those of RestClient::Apply, but for an object that is gone: OK.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "operator/api/kinds.h"
#include "operator/apply/fleet_gauges.h"
#include "operator/kube/rest_client.h"
#include "operator/runtime/own_writes.h"

namespace flamefleet {

class StatusWriter {
 public:
  static constexpr std::chrono::seconds kMinInterval{10};

  // References outlive this object.
  StatusWriter(RestClient& client, OwnWrites& own_writes, const Clock& clock, Metrics& metrics);

  // `live` is the status object in the cache, `want` the one to write. The time until it may be
  // written, when it is too early now; else zero.
  Result<std::chrono::nanoseconds> Write(const Resource& resource, const api::ObjectMeta& meta,
                                         const nlohmann::json& live, const nlohmann::json& want,
                                         const std::stop_token& stop);
  // The object is gone.
  void Forget(const Resource& resource, const std::string& ns, const std::string& name);

 private:
  RestClient& client_;
  OwnWrites& own_writes_;
  const Clock& clock_;
  std::map<std::string, int64_t> written_ns_;  // when, by path
  FleetGauges gauges_;
  CounterMetric applied_, unchanged_, postponed_, failed_;
};

// True when a condition of `want` has another status or reason than in `live`, or is new.
bool ConditionFlips(const nlohmann::json& live, const nlohmann::json& want);

}  // namespace flamefleet
