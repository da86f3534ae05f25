// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "agent/run/commands.h"
#include "agent/run/node_agent.h"
#include "agent/spool/spool.h"
#include "base/log.h"
#include "base/size.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

constexpr int64_t kMinSpoolBytes = 1 << 20;
// How often the lock of another agent is tried.
constexpr std::chrono::seconds kLockInterval{1};

Status CheckOptions(const NodeAgentOptions& options) {
  if (options.control.operator_address.empty()) {
    return InvalidArgumentError("--operator is missing: HOST:PORT of the operator");
  }
  if (options.control.node.empty()) {
    return InvalidArgumentError("--node is missing: the name of this node");
  }
  if (options.control.node.find('/') != std::string::npos) {
    return InvalidArgumentError("--node " + options.control.node + ": not the name of a node");
  }
  return OkStatus();
}

struct OpenedSpool {
  std::unique_ptr<Spool> spool;  // null: it cannot be used, profiles wait in memory
  bool stopped = false;          // a signal came first
};

// Two agents of one node would take the same samples twice: the second one waits for the first to
// go, as at the end of a rolling update.
Result<OpenedSpool> OpenSpoolWhenAlone(const SpoolOptions& options, const std::string& listen) {
  bool damaged = false;
  auto spool = Spool::Open(options, &damaged);
  if (spool.status().code() == StatusCode::kAlreadyExists) {
    const Status cause = spool.status();
    Log(LogLevel::kWarn, "another agent runs on this node, waiting for it to stop",
        {{"error", cause}});
    Metrics metrics;
    FF_ASSIGN_OR_RETURN(const auto http, ServeEndpoints(listen, &metrics,
                                                        {.healthy = [] { return OkStatus(); },
                                                         .sampled = [&cause] { return cause; },
                                                         .delivered = [] { return OkStatus(); }}));
    while (spool.status().code() == StatusCode::kAlreadyExists) {
      if (WaitForTerminationSignal(kLockInterval) != 0) return OpenedSpool{.stopped = true};
      spool = Spool::Open(options, &damaged);
    }
  }
  if (damaged) {
    Log(LogLevel::kError, "spool was damaged and is begun anew",
        {{"directory", options.directory}});
  }
  if (spool.ok()) return OpenedSpool{.spool = *std::move(spool)};
  Log(LogLevel::kError, "spool cannot be used, profiles wait in memory",
      {{"error", spool.status()}});
  return OpenedSpool{};
}

}  // namespace

int UsageError(const Status& status, const std::string& command) {
  std::fprintf(stderr, "%s: %s\n", command.c_str(), ErrorMessage(status).c_str());
  std::fprintf(stderr, "Try '%s --help'.\n", command.c_str());
  return kExitUsage;
}

int RunCommand(int count, const char* const* arguments) {
  const std::string command = "flamefleet-agent run";
  NodeAgentOptions options;
  SpoolOptions spool_options;
  options.control.trust_file = "/var/run/flamefleet/operator/ca.crt";
  options.control.token_file = "/var/run/flamefleet/operator/token";
  std::string log_level = "info";
  std::string spool_size = "16Mi";
  Flags flags(command + " --operator HOST:PORT --node NAME [flags]",
              "Profiles the pods of one node as the operator says, until SIGTERM.");
  flags.Text("operator", "HOST:PORT", "control address of the operator",
             &options.control.operator_address, "FLAMEFLEET_OPERATOR");
  flags.Text("node", "NAME", "name of the node this agent runs on", &options.control.node,
             "FLAMEFLEET_NODE");
  flags.Text("pool", "NAME", "AgentPool this agent belongs to", &options.control.pool,
             "FLAMEFLEET_POOL");
  flags.Text("pod", "NAME", "name of this agent's pod", &options.control.pod_name,
             "FLAMEFLEET_POD");
  flags.Text("operator-trust", "FILE", "PEM certificates of the operator's authority",
             &options.control.trust_file);
  flags.Text("operator-token", "FILE", "service-account token for the operator",
             &options.control.token_file);
  flags.Text("state", "DIR", "where the assignment is kept for a restart; default: nowhere",
             &options.state_dir);
  flags.Text("listen", "ADDRESS", "where /metrics, /healthz and /readyz are served",
             &options.listen);
  flags.Text("proc", "DIR", "the host's proc file system", &options.proc_root);
  flags.Text("spool", "DIR", "where profiles wait for a backend that is away; without it in memory",
             &spool_options.directory);
  flags.Text("spool-size", "SIZE", "what they may take: 500Mi, 1Gi; the oldest go beyond it",
             &spool_size);
  flags.Text("log-level", "LEVEL", "debug, info, warn or error", &log_level);
  const Status parsed = flags.Parse(count, arguments);
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  if (!parsed.ok()) return UsageError(parsed, command);
  const Result<LogLevel> level = ParseLogLevel(log_level);
  if (!level.ok()) return UsageError(level.status(), command);
  SetLogLevel(*level);
  const Result<int64_t> spool_bytes = ParseSize(spool_size, kMinSpoolBytes);
  if (!spool_bytes.ok()) return UsageError(Annotate(spool_bytes.status(), "--spool-size"), command);
  spool_options.max_bytes = *spool_bytes;
  if (!spool_options.directory.empty()) options.debug_dir = spool_options.directory + "/debuginfo";
  const Status checked = CheckOptions(options);
  if (!checked.ok()) return UsageError(checked, command);

  auto opened = OpenSpoolWhenAlone(spool_options, options.listen);
  if (!opened.ok()) {
    Log(LogLevel::kError, "agent cannot start", {{"error", opened.status()}});
    return kExitFailure;
  }
  if (opened->stopped) return 0;
  auto agent = NodeAgent::Create(options, std::move(opened->spool));
  if (!agent.ok()) {
    Log(LogLevel::kError, "agent cannot start", {{"error", agent.status()}});
    return kExitFailure;
  }
  Log(LogLevel::kInfo, "agent started",
      {{"version", FF_VERSION},
       {"node", options.control.node},
       {"operator", options.control.operator_address},
       {"http_port", (*agent)->http_port()}});
  const int signal = WaitForTerminationSignal();
  Log(LogLevel::kInfo, "agent stops", {{"signal", signal}});
  return 0;
}

}  // namespace flamefleet::agent
