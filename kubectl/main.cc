// SPDX-License-Identifier: Apache-2.0
// kubectl-flamefleet: `kubectl flamefleet COMMAND`, for people who use what the operator runs.
#include <cstdio>
#include <exception>
#include <string_view>

#include "base/log.h"
#include "kubectl/commands.h"

namespace flamefleet::kubectl {
namespace {

constexpr const char* kUsage =
    "Usage: kubectl flamefleet COMMAND [flags]\n"
    "\n"
    "Looks at what Flamefleet profiles in a cluster.\n"
    "\n"
    "  status   why a pod, the pods of a workload or of a namespace are profiled or not\n"
    "  top      the hottest functions of a workload\n"
    "  pprof    the profile of a workload, in a file\n"
    "\n"
    "Each command has --help. 'kubectl flamefleet version' says the version.\n";

int Main(int argc, const char* const* argv) {
  SetLogLevel(LogLevel::kError);
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "status") return StatusCommand(argc - 2, argv + 2);
  if (command == "top") return TopCommand(argc - 2, argv + 2);
  if (command == "pprof") return PprofCommand(argc - 2, argv + 2);
  if (command == "version" || command == "--version") {
    std::puts("kubectl-flamefleet " FF_VERSION);
    return 0;
  }
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (!command.empty()) std::fprintf(stderr, "error: there is no command '%s'\n\n", argv[1]);
  std::fputs(kUsage, stderr);
  return kNoAnswer;
}

}  // namespace
}  // namespace flamefleet::kubectl

int main(int argc, char** argv) {
  try {
    return flamefleet::kubectl::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return flamefleet::kubectl::kNoAnswer;
  }
}
