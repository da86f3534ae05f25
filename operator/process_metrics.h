// SPDX-License-Identifier: Apache-2.0
// ProcessMetrics: what every Prometheus client says of its own process (process_...), so that
// dashboards made for other controllers show ours.
//
// Thread: any; locked inside. Units: seconds, bytes. Errors: none; what cannot be read keeps its
// value. Source: https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics
#pragma once

#include "base/metrics.h"
#include "base/mutex.h"

namespace flamefleet {

class ProcessMetrics {
 public:
  explicit ProcessMetrics(Metrics& metrics);

  // Brings them up to now: before they are read.
  void Update();

 private:
  Mutex mutex_;  // two scrapes must not both add what is new
  CounterMetric cpu_seconds_;
  GaugeMetric start_time_, resident_bytes_, virtual_bytes_, open_fds_, max_fds_;
};

}  // namespace flamefleet
