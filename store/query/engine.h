// SPDX-License-Identifier: Apache-2.0
// QueryEngine: what all queries share: the database, their number and their memory.
//
// Thread: any, several at once.
// Bounds: kMaxConcurrentQueries at a time, kMaxWaitingQueries wait for a QueryTurn. The merged
// profiles of
//         one query take at most half of its memory, so that its answer has the other half.
#pragma once

#include <atomic>
#include <cstddef>
#include <semaphore>

#include "base/clock.h"
#include "base/status.h"
#include "store/db/database.h"
#include "store/query/query.h"

namespace flamefleet::store {

constexpr ptrdiff_t kMaxConcurrentQueries = 2;
// Each waits in a thread of the HTTP server, which has others for pushes and probes.
constexpr int kMaxWaitingQueries = 8;
constexpr size_t kDefaultQueryMemory = 256 << 20;
constexpr size_t kMinQueryMemory = 1 << 20;

class QueryEngine {
 public:
  QueryEngine(Database* database, const Clock* clock, size_t query_memory)
      : database_(database), clock_(clock), query_memory_(query_memory) {}
  QueryEngine(const QueryEngine&) = delete;
  QueryEngine& operator=(const QueryEngine&) = delete;

  Database* database() const { return database_; }
  const Clock& clock() const { return *clock_; }

  // As MergeProfiles; `held` is a merge that the query has already.
  Result<MergedProfile> Merge(const Selector& selector, const TimeRange& range,
                              const MergedProfile* held = nullptr) const;

 private:
  friend class QueryTurn;
  Database* const database_;
  const Clock* const clock_;
  const size_t query_memory_;
  std::counting_semaphore<kMaxConcurrentQueries> slots_{kMaxConcurrentQueries};
  std::atomic<int> waiting_ = 0;
};

// The right to run a query, while it lives.
class QueryTurn {
 public:
  // Waits for it, not forever, and not when enough wait.
  explicit QueryTurn(QueryEngine* engine);
  ~QueryTurn();
  QueryTurn(const QueryTurn&) = delete;
  QueryTurn& operator=(const QueryTurn&) = delete;

  // kUnavailable: too many queries run.
  const Status& status() const { return status_; }

 private:
  QueryEngine* const engine_;
  Status status_;
};

}  // namespace flamefleet::store
