// SPDX-License-Identifier: Apache-2.0
// flamefleet-operator: `run` the operator, `create-missing` objects that a cluster begins with, or
// `render` manifests offline.
#include <cstdio>
#include <exception>
#include <string_view>

#include "base/standard_output.h"
#include "operator/commands.h"

namespace flamefleet {
namespace {

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

int Main(int argc, const char* const* argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "run") return RunCommand(argc - 2, argv + 2);
  if (command == "create-missing") return CreateMissingCommand(argc - 2, argv + 2);
  if (command == "render") return RenderCommand(argc - 2, argv + 2);
  if (command == "--version") {
    std::puts("flamefleet-operator " FF_VERSION);
    return 0;
  }
  if (command == "--help" || command == "help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (!command.empty()) {
    std::fprintf(stderr, "flamefleet-operator: there is no command '%s'\n\n", argv[1]);
  }
  std::fputs(kUsage, stderr);
  return kUsageError;
}

}  // namespace
}  // namespace flamefleet

int main(int argc, char** argv) {
  try {
    const int code = flamefleet::Main(argc, argv);
    const flamefleet::Status written = flamefleet::FlushStandardOutput();
    if (written.ok()) return code;
    std::fprintf(stderr, "flamefleet-operator: %s\n", flamefleet::ErrorMessage(written).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "flamefleet-operator: %s\n", error.what());
  }
  return 1;
}
