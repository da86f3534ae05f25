// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "agent/run/commands.h"
#include "agent/run/node_agent.h"
#include "base/log.h"
#include "base/thread.h"

namespace flamefleet::agent {
namespace {

Status CheckOptions(const NodeAgentOptions& options) {
  if (options.control.operator_address.empty()) {
    return InvalidArgumentError("--operator is missing: HOST:PORT of the operator");
  }
  if (options.control.node.empty()) {
    return InvalidArgumentError("--node is missing: the name of this node");
  }
  return OkStatus();
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
  std::string log_level = "info";
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
  flags.Text("listen", "ADDRESS", "where /metrics, /healthz and /readyz are served",
             &options.listen);
  flags.Text("proc", "DIR", "the host's proc file system", &options.proc_root);
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
  const Status checked = CheckOptions(options);
  if (!checked.ok()) return UsageError(checked, command);

  auto agent = NodeAgent::Create(options);
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
