// SPDX-License-Identifier: Apache-2.0
// flamefleet-agent: profiles the pods of a node for the operator, or this host without one.
#include <malloc.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "agent/run/commands.h"
#include "base/standard_output.h"
#include "base/thread.h"

namespace {

constexpr const char* kHelp =
    "Usage: flamefleet-agent COMMAND [flags]\n"
    "\n"
    "Commands:\n"
    "  run      profile the pods of this node as the operator says\n"
    "  local    profile this host without Kubernetes\n"
    "\n"
    "'flamefleet-agent COMMAND --help' lists the flags. 'flamefleet-agent --version' says the "
    "version.\n";

// Dozens of threads take and free buffers of megabytes by turns. The C library would keep those for
// each of them: in arenas of their own, and, after the first of a size was freed, no longer by
// mmap.
void GiveMemoryBack() {
  constexpr int kMmapFrom = 128 << 10;
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, kMmapFrom);
  mallopt(M_TRIM_THRESHOLD, kMmapFrom);
}

int Dispatch(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "run") return flamefleet::agent::RunCommand(argc - 2, argv + 2);
  if (command == "local") return flamefleet::agent::LocalCommand(argc - 2, argv + 2);
  if (command == "--version") {
    std::puts("flamefleet-agent " FF_VERSION);
    return 0;
  }
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (!command.empty()) std::fprintf(stderr, "unknown command '%s'\n", command.c_str());
  std::fputs(kHelp, stderr);
  return flamefleet::agent::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  GiveMemoryBack();
  flamefleet::BlockTerminationSignals();
  try {
    const int code = Dispatch(argc, argv);
    const flamefleet::Status written = flamefleet::FlushStandardOutput();
    if (written.ok()) return code;
    std::fprintf(stderr, "flamefleet-agent: %s\n", flamefleet::ErrorMessage(written).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "flamefleet-agent: %s\n", error.what());
  }
  return flamefleet::agent::kExitFailure;
}
