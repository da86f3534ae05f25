// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>
#include <string_view>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory_limit.h"
#include "base/size.h"
#include "base/standard_output.h"
#include "base/thread.h"
#include "store/check_command.h"
#include "store/export_command.h"
#include "store/http/tenants.h"
#include "store/options.h"
#include "store/query/engine.h"
#include "store/serve.h"

namespace flamefleet::store {
namespace {

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
             "who may read and write (docs/store.md), read again when it changes; without it "
             "everybody who reaches the address",
             &options.auth_file);
  flags.Text("read-listen", "ADDRESS",
             "where whoever reaches it may read without a credential, in plain HTTP: on loopback, "
             "such as 127.0.0.1:4040 in a container for kubectl port-forward",
             &options.read_listen);
  flags.Text("probe-listen", "ADDRESS",
             "where to serve /healthz, /readyz and /metrics alone, in plain HTTP, such as :9090",
             &options.probe_listen);
  flags.Text("tls-cert", "FILE",
             "certificate chain in PEM: HTTPS alone is served; read again when it changes",
             &options.tls_cert);
  flags.Text("tls-key", "FILE", "its key in PEM", &options.tls_key);
  flags.Number("tenants", "N",
               "keep up to N tenants apart, by the header X-Scope-OrgID; each has an equal part of "
               "--max-size and --query-memory; 0: the header means nothing",
               0, kMaxTenants, &options.tenants);
  flags.Text(
      "query-memory", "SIZE",
      "what one query may take; a larger one fails; two run at a time; by default 256Mi, or a "
      "quarter of the memory limit of its cgroup where that is less",
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
  if (status.ok() && !options.read_listen.empty() && !IsLoopback(options.read_listen)) {
    status = InvalidArgumentError("--read-listen must be on loopback, such as 127.0.0.1:4040");
  }
  const Result<int64_t> max_bytes = ParseSize(options.max_size, kMinMaxSize);
  if (status.ok() && !max_bytes.ok()) status = Annotate(max_bytes.status(), "--max-size");
  const Result<int64_t> query_memory = options.query_memory.empty()
                                           ? DefaultQueryMemory(OwnMemoryLimit())
                                           : ParseSize(options.query_memory, kMinQueryMemory);
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
    const int code = flamefleet::store::Run(argc, argv);
    const flamefleet::Status written = flamefleet::FlushStandardOutput();
    if (written.ok()) return code;
    std::fprintf(stderr, "flamefleet-store: %s\n", flamefleet::ErrorMessage(written).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "flamefleet-store: %s\n", error.what());
  }
  return 1;
}
