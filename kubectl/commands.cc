// SPDX-License-Identifier: Apache-2.0
#include "kubectl/commands.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace flamefleet::kubectl {
namespace {

int VersionCommand(int /*count*/, const char* const* /*arguments*/) {
  std::puts("kubectl-flamefleet " FF_VERSION);
  return 0;
}

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(int count, const char* const* arguments);
};
constexpr std::array<Command, 6> kCommands = {
    {{"status", "why pods are profiled or not: one, those of a workload or of a namespace",
      StatusCommand},
     {"top", "the hottest functions of a workload", TopCommand},
     {"pprof", "the profile of a workload, in a file", PprofCommand},
     {"open", "the web UI of the store, in a browser", OpenCommand},
     {"completion", "what bash, fish or zsh reads to complete these", CompletionCommand},
     {"version", "the version of this program", VersionCommand}}};

std::string Usage() {
  constexpr size_t kWidth = 12;
  std::string text =
      "Usage: kubectl flamefleet COMMAND [flags]\n\n"
      "Looks at what Flamefleet profiles in a cluster.\n\n";
  for (const Command& command : kCommands) {
    text += "  " + std::string(command.name) + std::string(kWidth - command.name.size(), ' ') +
            std::string(command.summary) + "\n";
  }
  return text + "\nEach has --help.\n";
}

}  // namespace

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : kCommands)
    names.emplace_back(command.name);
  return names;
}

int RunCommand(int count, const char* const* arguments) {
  const std::string name = count > 0 ? arguments[0] : "";
  const auto found = std::ranges::find(kCommands, name, &Command::name);
  if (found != kCommands.end()) return found->run(count - 1, arguments + 1);
  if (name == "__complete") return CompleteCommand(count - 1, arguments + 1);
  if (name == "--help" || name == "-h" || name == "help") {
    std::fputs(Usage().c_str(), stdout);
    return 0;
  }
  if (!name.empty()) std::fprintf(stderr, "error: there is no command '%s'\n\n", name.c_str());
  std::fputs(Usage().c_str(), stderr);
  return kNoAnswer;
}

int Refuse(const Status& status) {
  std::fprintf(stderr, "error: %s\n", ErrorMessage(status).c_str());
  return kNoAnswer;
}

int RefuseUsage(const Status& status) {
  std::fprintf(stderr, "error: %s\nTry --help.\n", ErrorMessage(status).c_str());
  return kNoAnswer;
}

void PrintNote(const std::string& note) {
  std::fprintf(stderr, "note: %s\n", note.c_str());
}

}  // namespace flamefleet::kubectl
