// SPDX-License-Identifier: Apache-2.0
// StoreHandler: the routes of flamefleet-store. kRoutes in handler.cc is their list, GET / shows
// it.
//
// Thread: any, several at once.
// Bounds: those of PushHandler and QueryEngine.
// Errors: become a status code and a message; of push as Pyroscope has it, in JSON.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/http/server.h"
#include "base/metrics.h"
#include "store/db/database.h"
#include "store/http/access.h"
#include "store/http/tenants.h"
#include "store/query/engine.h"

namespace flamefleet::store {

class StoreHandler {
 public:
  struct Options {
    size_t query_memory = kDefaultQueryMemory;
    Access access;
    Tenants* tenants = nullptr;  // instead of the database
  };
  // `database` may be nullptr when there are tenants.
  StoreHandler(Database* database, const Clock* clock, Metrics* metrics, Options options);
  StoreHandler(Database* database, const Clock* clock, Metrics* metrics)
      : StoreHandler(database, clock, metrics, Options()) {}
  ~StoreHandler();
  StoreHandler(const StoreHandler&) = delete;
  StoreHandler& operator=(const StoreHandler&) = delete;

  HttpServerResponse Handle(const HttpServerRequest& request);
  // From somebody who may read everything, credentials or not, and write nothing.
  HttpServerResponse HandleReader(const HttpServerRequest& request);
  // From anybody: /healthz, /readyz and /metrics, nothing else.
  HttpServerResponse HandleProbe(const HttpServerRequest& request);
  // What a request is checked by from now on.
  void SetAccess(Access access);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamefleet::store
