// SPDX-License-Identifier: Apache-2.0
// PushHandler: POST /push.v1.PusherService/Push, Connect unary, with the status codes of Pyroscope.
//
//   200 stored, on disk
//   400 the request, a label or a profile is wrong; 413 too large: a retry does not help
//   405 not POST; 415 not application/proto or application/json; 501 compressed, but not by gzip
//   503 busy, or the disk is full: retry when Retry-After says
//
// Thread: any, several at once.
// Bounds: kMaxConcurrentReads requests are decompressed and checked at a time; a further one waits.
#pragma once

#include <cstddef>
#include <map>
#include <semaphore>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/http/server.h"
#include "base/metrics.h"
#include "store/db/database.h"
#include "store/ingest/push.h"

namespace flamefleet::store {

// Each holds a few times PushLimits::max_request_bytes.
constexpr ptrdiff_t kMaxConcurrentReads = 4;

class PushHandler {
 public:
  PushHandler(Database* database, const Clock* clock, Metrics* metrics);

  HttpServerResponse Handle(const HttpServerRequest& request);
  // POST /ingest: 200 stored; 400 a name is wrong, 422 something else; 405, 503 as above.
  HttpServerResponse HandleIngest(const HttpServerRequest& request);
  // POST /v1development/profiles (OTLP): 200 stored, or in part, as the body says; 400 nothing is
  // stored, a retry does not help; 405; 413 too large; 415 not protobuf, or compressed, but not by
  // gzip; 503 busy or the disk is full: retry later. Other bodies than of 200 are
  // google.rpc.Status.
  HttpServerResponse HandleOtlp(const HttpServerRequest& request);

 private:
  // Decompresses and reads the body.
  PushResult Read(const HttpServerRequest& request);
  // kResourceExhausted: the disk is full; kUnavailable: busy; kFailedPrecondition: one series too
  // many. Counted.
  Status Store(const std::vector<NewProfile>& profiles);
  void CountRefused(const char* reason, size_t profiles);

  Database* const database_;
  const Clock* const clock_;
  PushLimits limits_;
  std::map<std::string, CounterMetric> refused_;  // by reason; complete from the start
  std::counting_semaphore<kMaxConcurrentReads> reads_{kMaxConcurrentReads};
};

}  // namespace flamefleet::store
