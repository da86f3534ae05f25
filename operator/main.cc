// SPDX-License-Identifier: Apache-2.0
// flamefleet-operator: `run` the operator, `create-missing` objects that a cluster begins with, or
// `render` manifests offline.
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>

#include "base/flags.h"
#include "base/log.h"
#include "base/thread.h"
#include "operator/operator.h"
#include "operator/render/render.h"
#include "operator/starter.h"

namespace flamefleet {
namespace {

constexpr int kUsageError = 2;

constexpr const char* kUsage =
    "Usage: flamefleet-operator COMMAND [flags]\n"
    "\n"
    "Runs a fleet of profilers on a Kubernetes cluster.\n"
    "\n"
    "  run             run the operator until SIGTERM or SIGINT\n"
    "  create-missing  create the AgentPools and ProfilingBackends that a cluster begins with\n"
    "  render          say what would be made of manifests, without a cluster\n"
    "\n"
    "Each command has --help. 'flamefleet-operator --version' says the version.\n";

// What both commands share.
struct CommonOptions {
  ConfigSources sources{.environment = ProcessEnvironment};
  std::string log_level = "info";

  void AddTo(Flags& flags) {
    flags.Text("kubeconfig", "FILE",
               "how to reach the API server; default: $KUBECONFIG, the pod's service account, "
               "~/.kube/config",
               &sources.kubeconfig_flag);
    flags.Text("log-level", "LEVEL", "debug, info, warn or error", &log_level);
  }
};

int RefuseUsage(const Status& status) {
  std::fprintf(stderr, "flamefleet-operator: %s\nTry --help.\n", ErrorMessage(status).c_str());
  return kUsageError;
}

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
  SetLogLevel(*level);
  BlockTerminationSignals();
  return RunUntilSignal(body);
}

int Run(int count, const char* const* arguments) {
  CommonOptions common;
  OperatorOptions options;
  options.listen = "127.0.0.1:8081";
  options.agents_listen = ":9443";
  options.lease.name = "flamefleet-operator";
  Flags flags("flamefleet-operator run [flags]", "Runs the operator until SIGTERM or SIGINT.");
  common.AddTo(flags);
  flags.Text("namespace", "NAME",
             "where agents and stores run; default: that of the pod or of the kubeconfig's context",
             &options.ns, "FLAMEFLEET_NAMESPACE");
  flags.Text("pod", "NAME", "the operator's own pod, whose image agents and stores run",
             &options.pod, "FLAMEFLEET_POD");
  flags.Text("image", "IMAGE", "the image of agents and stores, instead of that of --pod",
             &options.image, "FLAMEFLEET_IMAGE");
  flags.Text("listen", "ADDRESS", "where to serve /healthz, /readyz and /metrics", &options.listen);
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

int RenderCommand(int count, const char* const* arguments) {
  render::RenderOptions options;
  options.settings = {.ns = "flamefleet-system", .image = "flamefleet"};
  std::string form = "text";
  Flags flags("flamefleet-operator render -f DIR|FILE... [flags]",
              "Says, without a cluster, which objects the operator would make of manifests, what "
              "would be profiled of each pod, and why not what would not. Exits with 1 when a "
              "manifest is invalid. Rules in CEL are checked by the API server only.");
  flags.TextList("filename", "PATH",
                 "a file, a folder with all below it, or - for standard input: pods, workloads, "
                 "our kinds, Lists of them",
                 &options.paths);
  flags.Short('f', "filename");
  flags.Arguments(&options.paths);
  flags.Text("output", "FORM", "text, yaml or json", &form);
  flags.Short('o', "output");
  flags.Text("namespace", "NAME", "where agents and stores would run", &options.settings.ns);
  flags.Text("image", "IMAGE", "the image of agents and stores", &options.settings.image);
  const Status parsed = flags.Parse(count, arguments);
  if (!parsed.ok()) return RefuseUsage(parsed);
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  if (options.paths.empty()) return RefuseUsage(InvalidArgumentError("-f is missing"));
  const std::optional<render::OutputForm> parsed_form = render::ParseOutputForm(form);
  if (!parsed_form) {
    return RefuseUsage(InvalidArgumentError("--output '" + form + "': want text, yaml or json"));
  }
  options.form = *parsed_form;
  return render::Render(options, std::cout, std::cerr) ? 0 : 1;
}

int Main(int argc, const char* const* argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "run") return Run(argc - 2, argv + 2);
  if (command == "create-missing") return CreateMissingCommand(argc - 2, argv + 2);
  if (command == "render") return RenderCommand(argc - 2, argv + 2);
  if (command == "--version") {
    std::puts("flamefleet-operator " FF_VERSION);
    return 0;
  }
  const bool help = command == "--help" || command == "help";
  std::fputs(kUsage, help ? stdout : stderr);
  return help ? 0 : kUsageError;
}

}  // namespace
}  // namespace flamefleet

int main(int argc, char** argv) {
  try {
    return flamefleet::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "flamefleet-operator: %s\n", error.what());
    return 1;
  }
}
