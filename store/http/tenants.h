// SPDX-License-Identifier: Apache-2.0
// Tenants: what reads and writes profiles, once for all, or once for each tenant that the header
// X-Scope-OrgID names: other files, other queries, nothing shared but the process.
//
// A tenant begins with its first push. A browser, which sends no such header for a link, names it
// by the parameter `tenant`.
//
// Thread: any. Bounds: max_tenants; each has an equal part of the disk and of a query's memory.
// Errors: Open: a directory that cannot be opened, or more of them than max_tenants. Of: see there.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/http/server.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "store/db/database.h"
#include "store/http/push_handler.h"
#include "store/http/querier_handler.h"
#include "store/http/query_handler.h"
#include "store/query/engine.h"

namespace flamefleet::store {

constexpr size_t kMaxTenants = 100;
constexpr size_t kMaxTenantName = 150;

// The routes over one database.
struct ProfileHandlers {
  ProfileHandlers(Database* database, const Clock* clock, Metrics* metrics, size_t query_memory)
      : engine(database, clock, query_memory),
        push(database, clock, metrics),
        queries(&engine),
        querier(&engine) {}
  QueryEngine engine;
  PushHandler push;
  QueryHandler queries;
  QuerierHandler querier;
};

class Tenants {
 public:
  struct Options {
    DatabaseOptions database;  // of all together
    size_t query_memory = kDefaultQueryMemory;
    size_t max_tenants = 0;
  };
  // Those that have a directory, <directory>/tenants/<name>.
  static Result<std::unique_ptr<Tenants>> Open(const Options& options, const Clock* clock,
                                               Metrics* metrics);
  Tenants(const Tenants&) = delete;
  Tenants& operator=(const Tenants&) = delete;

  // Letters, digits and !-_.*'(), as Pyroscope has it; neither "." nor "..".
  static bool IsName(const std::string& name);
  // The tenant that the request names; empty: none.
  static std::string NameOf(const HttpServerRequest& request);

  // kNotFound: it has pushed nothing yet; kResourceExhausted: there are max_tenants; or its
  // directory cannot be made.
  Result<ProfileHandlers*> Of(const std::string& name, bool create);

 private:
  struct Tenant {
    std::unique_ptr<Database> database;
    std::unique_ptr<ProfileHandlers> handlers;
  };
  Tenants(const Options& options, const Clock* clock, Metrics* metrics)
      : options_(options), clock_(clock), metrics_(metrics) {}
  Result<ProfileHandlers*> Add(const std::string& name) FF_REQUIRES(mutex_);

  const Options options_;
  const Clock* const clock_;
  Metrics* const metrics_;
  Mutex mutex_;
  std::map<std::string, Tenant> tenants_ FF_GUARDED_BY(mutex_);
};

}  // namespace flamefleet::store
