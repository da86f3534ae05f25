// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <string_view>

#include "base/flags.h"
#include "base/http/server.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/size.h"
#include "base/thread.h"
#include "store/check_command.h"
#include "store/db/database.h"
#include "store/export_command.h"
#include "store/grpc/otlp_server.h"
#include "store/http/handler.h"
#include "store/http/tenants.h"
#include "store/ingest/push.h"
#include "store/options.h"

namespace flamefleet::store {
namespace {

// A push waits in its handler for the sync of its group: what arrives at once is one group.
constexpr size_t kHandlerThreads = 16;
constexpr size_t kMaxConnections = 512;

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
  std::optional<HttpServerTls> tls;
  if (!options.tls_cert.empty()) tls = {options.tls_cert, options.tls_key};
  FF_ASSIGN_OR_RETURN(const std::unique_ptr<HttpServer> server,
                      HttpServer::Create({.listen = options.listen,
                                          .tls = tls,
                                          .max_body_bytes = PushLimits{}.max_request_bytes,
                                          .max_connections = kMaxConnections,
                                          .handler_threads = kHandlerThreads},
                                         [&](const HttpServerRequest& request) {
                                           return handler.Handle(request);
                                         }));
  std::unique_ptr<OtlpServer> otlp;
  if (!options.otlp_listen.empty()) {
    FF_ASSIGN_OR_RETURN(
        otlp, OtlpServer::Create(options.otlp_listen, tls, [&](const HttpServerRequest& request) {
          return handler.Handle(request);
        }));
    Log(LogLevel::kInfo, "store is listening for OTLP over gRPC",
        {{"address", options.otlp_listen}, {"otlp_port", otlp->port()}});
  }
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

int Run(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    std::puts("flamefleet-store " FF_VERSION);
    return 0;
  }
  if (argc == 3 && std::string_view(argv[1]) == "check") return CheckDirectory(argv[2]);
  if (argc >= 2 && std::string_view(argv[1]) == "export") return ExportCommand(argc - 2, argv + 2);
  StoreOptions options;
  Flags flags("flamefleet-store --data DIR | check DIR | export --help",
              "Keeps profiles and answers queries about them; check: is what is on disk whole?");
  flags.Text("listen", "ADDRESS", "where to serve HTTP", &options.listen);
  flags.Text("otlp-listen", "ADDRESS",
             "where to take OTLP profiles over gRPC, such as 127.0.0.1:4317; without it over HTTP "
             "alone",
             &options.otlp_listen);
  flags.Text("data", "DIR", "where the profiles are kept; created if needed", &options.data);
  flags.Duration("retention", "how long a profile is kept", &options.retention);
  flags.Text("max-size", "SIZE", "the oldest days go when all take more: 500Mi, 10Gi",
             &options.max_size);
  flags.Text("auth-file", "FILE",
             "who may read and write (docs/store.md); without it everybody who reaches the address",
             &options.auth_file);
  flags.Text("tls-cert", "FILE",
             "certificate chain in PEM: HTTPS alone is served; read again when it changes",
             &options.tls_cert);
  flags.Text("tls-key", "FILE", "its key in PEM", &options.tls_key);
  flags.Number("tenants", "N",
               "keep up to N tenants apart, by the header X-Scope-OrgID; each has an equal part of "
               "--max-size and --query-memory; 0: the header means nothing",
               0, kMaxTenants, &options.tenants);
  flags.Text("query-memory", "SIZE",
             "what one query may take; a larger one fails; two run at a time",
             &options.query_memory);
  flags.Text("log-level", "LEVEL", "debug, info, warn or error", &options.log_level);
  Status status = flags.Parse(argc - 1, argv + 1);
  if (status.ok() && flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  if (status.ok() && options.data.empty()) status = InvalidArgumentError("--data is missing");
  if (status.ok() && options.retention <= std::chrono::nanoseconds(0)) {
    status = InvalidArgumentError("--retention must be more than 0");
  }
  if (status.ok() && options.tls_cert.empty() != options.tls_key.empty()) {
    status = InvalidArgumentError("--tls-cert and --tls-key go together");
  }
  const Result<int64_t> max_bytes = ParseSize(options.max_size, kMinMaxSize);
  if (status.ok() && !max_bytes.ok()) status = Annotate(max_bytes.status(), "--max-size");
  const Result<int64_t> query_memory = ParseSize(options.query_memory, kMinQueryMemory);
  if (status.ok() && !query_memory.ok()) {
    status = Annotate(query_memory.status(), "--query-memory");
  }
  const Result<LogLevel> level = ParseLogLevel(options.log_level);
  if (status.ok()) status = level.status();
  if (!status.ok()) {
    std::fprintf(stderr, "flamefleet-store: %s\nTry --help.\n", ErrorMessage(status).c_str());
    return 2;
  }
  SetLogLevel(*level);
  BlockTerminationSignals();
  status = Serve(options, *max_bytes, *query_memory);
  if (!status.ok()) {
    Log(LogLevel::kError, "store cannot run", {{"error", status}});
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace flamefleet::store

int main(int argc, char** argv) {
  try {
    return flamefleet::store::Run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "flamefleet-store: %s\n", error.what());
    return 1;
  }
}
