// SPDX-License-Identifier: Apache-2.0
#include "operator/commands.h"

#include <cstdio>
#include <functional>
#include <string>

#include "base/flags.h"
#include "base/log.h"
#include "base/log_format.h"
#include "base/thread.h"
#include "operator/operator.h"
#include "operator/starter.h"

namespace flamefleet {
namespace {

// What both commands share.
struct CommonOptions {
  ConfigSources sources{.environment = ProcessEnvironment};
  std::string log_level = "info";
  std::string log_format = "json";

  void AddTo(Flags& flags) {
    flags.Text("kubeconfig", "FILE",
               "how to reach the API server; default: $KUBECONFIG, the pod's service account, "
               "~/.kube/config",
               &sources.kubeconfig_flag);
    flags.Text("log-level", "LEVEL", "debug, info, warn or error", &log_level);
    flags.Text("log-format", "FORMAT", "json or text", &log_format);
  }
};

// Runs `body` until it ends by itself or a signal asks it to.
int RunUntilSignal(const std::function<Status(const std::stop_token&)>& body) {
  constexpr std::chrono::milliseconds kSignalInterval{200};
  std::stop_source stop;
  const std::jthread signals = StartThread("signals", [&](const std::stop_token& done) {
    while (!done.stop_requested()) {
      const int signal = WaitForTerminationSignal(kSignalInterval);
      if (signal == 0) continue;
      Log(LogLevel::kInfo, "stopping", {{"signal", signal}});
      stop.request_stop();
      return;
    }
  });
  const Status status = body(stop.get_token());
  if (status.ok() || stop.stop_requested()) return 0;
  Log(LogLevel::kError, "cannot run", {{"error", status}});
  return 1;
}

// Parses the flags, sets the log level, then runs `body`; the exit code of the program.
int Execute(Flags& flags, CommonOptions& common, int count, const char* const* arguments,
            const std::function<Status(const std::stop_token&)>& body) {
  const Status parsed = flags.Parse(count, arguments);
  if (!parsed.ok()) return RefuseUsage(parsed);
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  const Result<LogLevel> level = ParseLogLevel(common.log_level);
  if (!level.ok()) return RefuseUsage(level.status());
  const Result<LogFormat> format = ParseLogFormat(common.log_format);
  if (!format.ok()) return RefuseUsage(format.status());
  SetLogLevel(*level);
  SetLogFormat(*format);
  BlockTerminationSignals();
  return RunUntilSignal(body);
}

}  // namespace

int RefuseUsage(const Status& status) {
  std::fprintf(stderr, "flamefleet-operator: %s\nTry --help.\n", ErrorMessage(status).c_str());
  return kUsageError;
}

int RunCommand(int count, const char* const* arguments) {
  CommonOptions common;
  OperatorOptions options;
  options.listen = "127.0.0.1:8081";
  options.debug_listen = "127.0.0.1:8082";
  options.agents_listen = ":9443";
  options.lease.name = "flamefleet-operator";
  Flags flags("flamefleet-operator run [flags]", "Runs the operator until SIGTERM or SIGINT.");
  common.AddTo(flags);
  flags.Text("namespace", "NAME",
             "where agents and stores run; default: that of the pod or of the kubeconfig's context",
             &options.ns, "FLAMEFLEET_NAMESPACE");
  flags.TextList("watch-namespace", "NAME",
                 "watch the pods of this namespace and of --namespace only, with rights there; may "
                 "be given several times; default: the pods of the cluster",
                 &options.watched);
  flags.Text("pod", "NAME", "the operator's own pod, whose image agents and stores run",
             &options.pod, "FLAMEFLEET_POD");
  flags.Text("image", "IMAGE", "the image of agents and stores, instead of that of --pod",
             &options.image, "FLAMEFLEET_IMAGE");
  flags.Text("listen", "ADDRESS", "where to serve /healthz, /readyz and /metrics", &options.listen);
  flags.Text("debug-listen", "ADDRESS",
             "where to serve /debug/state, on loopback only; empty: nowhere",
             &options.debug_listen);
  flags.Text("agents-listen", "ADDRESS", "where agents connect to", &options.agents_listen);
  flags.Duration("lease-duration", "how long a leader that died silently keeps others waiting",
                 &options.lease.lease_duration);
  flags.Duration("renew-deadline", "how long a leader goes on without renewing its lease",
                 &options.lease.renew_deadline);
  flags.Duration("retry-period", "time between two tries to get or renew the lease",
                 &options.lease.retry_period);
  return Execute(flags, common, count, arguments, [&](const std::stop_token& stop) -> Status {
    FF_ASSIGN_OR_RETURN(options.client, FindClientConfig(common.sources));
    if (options.ns.empty()) options.ns = options.client.ns;
    if (options.ns.empty()) return InvalidArgumentError("--namespace is missing");
    options.lease.identity = NewIdentity();
    FF_ASSIGN_OR_RETURN(const std::unique_ptr<Operator> program,
                        Operator::Create(options, SystemClock()));
    return program->Run(stop);
  });
}

int CreateMissingCommand(int count, const char* const* arguments) {
  CommonOptions common;
  std::string folder;
  Flags flags("flamefleet-operator create-missing --from DIR",
              "Creates the AgentPools and ProfilingBackends of a folder that are not there, and "
              "leaves the others as they are.");
  common.AddTo(flags);
  flags.Text("from", "DIR", "folder of *.yaml files, one manifest each", &folder);
  return Execute(flags, common, count, arguments, [&](const std::stop_token& stop) -> Status {
    if (folder.empty()) return InvalidArgumentError("--from is missing");
    FF_ASSIGN_OR_RETURN(const ClientConfig config, FindClientConfig(common.sources));
    Metrics metrics;
    FF_ASSIGN_OR_RETURN(const std::unique_ptr<RestClient> client,
                        RestClient::Create(config, SystemClock(), metrics));
    return CreateMissing(*client, folder, SystemClock(), stop);
  });
}

}  // namespace flamefleet
