// SPDX-License-Identifier: Apache-2.0
// The metrics of a Database. Private to store/db.
#pragma once

#include <vector>

#include "base/metrics.h"
#include "store/db/database.h"

namespace flamefleet::store {

inline const std::vector<double> kCommitSecondsBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                         0.1,   0.25,   0.5,   1,    2.5,   5};

struct Database::Counters {
  // What is a sum over tenants is counted for all together.
  Counters(Metrics* metrics, const std::string& tenant)
      : stored(metrics->Counter("flamefleet_store_profiles_stored_total",
                                "Profiles that are on disk.")),
        duplicates(metrics->Counter("flamefleet_store_profiles_duplicate_total",
                                    "Profiles that were stored already: retries.")),
        commit_errors(metrics->Counter("flamefleet_store_commit_errors_total",
                                       "Transactions that failed; their clients were told.")),
        removed_by_age(metrics->Counter("flamefleet_store_databases_removed_total",
                                        "Databases, one per day, removed by retention.",
                                        {{"reason", "age"}})),
        removed_by_size(metrics->Counter("flamefleet_store_databases_removed_total",
                                         "Databases, one per day, removed by retention.",
                                         {{"reason", "size"}})),
        damaged(metrics->Counter("flamefleet_store_databases_damaged_total",
                                 "Databases set aside because their file is damaged.")),
        damaged_profiles(metrics->Counter(
            "flamefleet_store_profiles_damaged_total",
            "Profiles read for a query whose bytes had changed on disk; left out.")),
        packed(metrics->Counter("flamefleet_store_profiles_packed_total",
                                "Profiles whose stacks and values were stored apart.")),
        pack_errors(
            metrics->Counter("flamefleet_store_pack_errors_total",
                             "Failed attempts to store stacks and values apart; nothing is lost.")),
        days(metrics->Gauge("flamefleet_store_databases",
                            "Databases, one per day, that are served.", OfTenant(tenant))),
        bytes(metrics->Gauge("flamefleet_store_disk_bytes", "Size of all days on disk.",
                             OfTenant(tenant))),
        commit_seconds(metrics->Histogram("flamefleet_store_commit_seconds",
                                          "Time of one transaction, sync included.",
                                          kCommitSecondsBounds)) {}
  static MetricLabels OfTenant(const std::string& tenant) {
    return tenant.empty() ? MetricLabels{} : MetricLabels{{"tenant", tenant}};
  }

  CounterMetric stored;
  CounterMetric duplicates;
  CounterMetric commit_errors;
  CounterMetric removed_by_age;
  CounterMetric removed_by_size;
  CounterMetric damaged;
  CounterMetric damaged_profiles;
  CounterMetric packed;
  CounterMetric pack_errors;
  GaugeMetric days;
  GaugeMetric bytes;
  HistogramMetric commit_seconds;
};

}  // namespace flamefleet::store
