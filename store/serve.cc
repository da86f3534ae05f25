// SPDX-License-Identifier: Apache-2.0
#include "store/serve.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/http/server.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "store/db/database.h"
#include "store/grpc/otlp_server.h"
#include "store/http/handler.h"
#include "store/http/tenants.h"
#include "store/ingest/push.h"

namespace flamefleet::store {
namespace {

// A push waits in its handler for the sync of its group: what arrives at once is one group.
constexpr size_t kHandlerThreads = 16;
constexpr size_t kMaxConnections = 512;
// Of pushes that are being read or wait for the disk, credentials or none.
constexpr size_t kMaxBodiesBytes = 2 * PushLimits{}.max_request_bytes;
// Of the addresses for one person and for probes.
constexpr size_t kFewConnections = 32;

// Reads the credentials again every kAuthInterval; when they are wrong those before stay.
std::jthread WatchAccess(const std::string& path, Access first, StoreHandler& handler) {
  return StartThread(
      "auth", [&handler, path, last = std::move(first)](const std::stop_token& stop) mutable {
        bool failing = false;
        while (!WaitForStop(stop, kAuthInterval)) {
          Result<Access> now = Access::ReadFile(path);
          if (!now.ok() && !failing) {
            Log(LogLevel::kError, "the credentials cannot be read again; those before still count",
                {{"error", now.status()}});
          }
          failing = !now.ok();
          if (failing || *now == last) continue;
          last = *now;
          handler.SetAccess(*std::move(now));
          Log(LogLevel::kInfo, "credentials renewed", {{"file", path}});
        }
      });
}

// The servers beside that of --listen; each is absent unless a flag names its address.
struct OtherServers {
  std::unique_ptr<OtlpServer> otlp;
  std::unique_ptr<HttpServer> read;
  std::unique_ptr<HttpServer> probe;
};

Result<OtherServers> ServeOthers(const StoreOptions& options,
                                 const std::optional<HttpServerTls>& tls, StoreHandler& handler) {
  OtherServers servers;
  if (!options.otlp_listen.empty()) {
    FF_ASSIGN_OR_RETURN(servers.otlp, OtlpServer::Create(options.otlp_listen, tls,
                                                         [&](const HttpServerRequest& request) {
                                                           return handler.Handle(request);
                                                         }));
    Log(LogLevel::kInfo, "store is listening for OTLP over gRPC",
        {{"address", options.otlp_listen}, {"otlp_port", servers.otlp->port()}});
  }
  if (!options.read_listen.empty()) {
    FF_ASSIGN_OR_RETURN(servers.read, HttpServer::Create({.listen = options.read_listen,
                                                          .max_connections = kFewConnections,
                                                          .handler_threads = kHandlerThreads / 2},
                                                         [&](const HttpServerRequest& request) {
                                                           return handler.HandleReader(request);
                                                         }));
    Log(LogLevel::kInfo, "store is listening for readers",
        {{"address", options.read_listen}, {"read_port", servers.read->port()}});
  }
  if (!options.probe_listen.empty()) {
    FF_ASSIGN_OR_RETURN(
        servers.probe,
        HttpServer::Create(
            {.listen = options.probe_listen, .max_connections = kFewConnections},
            [&](const HttpServerRequest& request) { return handler.HandleProbe(request); }));
    Log(LogLevel::kInfo, "store is listening for probes",
        {{"address", options.probe_listen}, {"probe_port", servers.probe->port()}});
  }
  return servers;
}

}  // namespace

Status Serve(const StoreOptions& options, int64_t max_bytes, int64_t query_memory) {
  Access access;
  if (!options.auth_file.empty()) {
    FF_ASSIGN_OR_RETURN(access, Access::ReadFile(options.auth_file));
  }
  Metrics metrics;
  const DatabaseOptions for_all = {
      .directory = options.data, .retention_ns = options.retention.count(), .max_bytes = max_bytes};
  std::unique_ptr<Database> database;
  std::unique_ptr<Tenants> tenants;
  if (options.tenants == 0) {
    FF_ASSIGN_OR_RETURN(database, Database::Open(for_all, &SystemClock(), &metrics));
  } else {
    FF_ASSIGN_OR_RETURN(tenants,
                        Tenants::Open({.database = for_all,
                                       .query_memory = static_cast<size_t>(query_memory),
                                       .max_tenants = static_cast<size_t>(options.tenants)},
                                      &SystemClock(), &metrics));
  }
  StoreHandler handler(database.get(), &SystemClock(), &metrics,
                       {.query_memory = static_cast<size_t>(query_memory),
                        .access = access,
                        .tenants = tenants.get()});
  std::jthread auth;
  if (!options.auth_file.empty()) auth = WatchAccess(options.auth_file, access, handler);
  std::optional<HttpServerTls> tls;
  if (!options.tls_cert.empty()) tls = {options.tls_cert, options.tls_key};
  FF_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server,
                      HttpServer::Create({.listen = options.listen,
                                          .tls = tls,
                                          .max_body_bytes = PushLimits{}.max_request_bytes,
                                          .max_bodies_bytes = kMaxBodiesBytes,
                                          .max_connections = kMaxConnections,
                                          .handler_threads = kHandlerThreads},
                                         [&](const HttpServerRequest& request) {
                                           return handler.Handle(request);
                                         }));
  FF_ASSIGN_OR_RETURN(const OtherServers others, ServeOthers(options, tls, handler));
  Log(LogLevel::kInfo, "store is listening",
      {{"address", options.listen}, {"port", server->port()}, {"data", options.data}});
  for (const std::string& address : {options.listen, options.otlp_listen}) {
    if (address.empty() || IsLoopback(address) || !access.IsOpen()) continue;
    Log(LogLevel::kWarn, "anyone who reaches this address can read and write profiles",
        {{"address", address}});
  }
  const int signal = WaitForTerminationSignal();
  Log(LogLevel::kInfo, "store is stopping", {{"signal", signal}});
  return OkStatus();
}

}  // namespace flamefleet::store
