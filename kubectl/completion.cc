// SPDX-License-Identifier: Apache-2.0
// `completion` prints what a shell is to read, and `__complete` answers it: what may follow the
// words so far, one per line, then ":4" (no file names), as kubectl asks its plugins.
#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "kubectl/cluster.h"
#include "kubectl/commands.h"
#include "kubectl/workload_name.h"
#include "operator/api/pod.h"

namespace flamefleet::kubectl {
namespace {

// What follows is not ours to format.
// clang-format off
constexpr const char* kBash = R"sh(_kubectl_flamefleet() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    [[ $line == :* ]] || COMPREPLY+=("$line")
  done < <(kubectl-flamefleet __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _kubectl_flamefleet kubectl-flamefleet
)sh";
constexpr const char* kZsh = R"sh(#compdef kubectl-flamefleet
_kubectl_flamefleet() {
  local -a found
  found=(${(f)"$(kubectl-flamefleet __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -- ${found:#:*}
}
compdef _kubectl_flamefleet kubectl-flamefleet
)sh";
constexpr const char* kFish = R"sh(function __kubectl_flamefleet
  set -l words (commandline -opc)
  set -l last (commandline -ct)
  kubectl-flamefleet __complete $words[2..-1] "$last" 2>/dev/null | string match -v ':*'
end
complete -c kubectl-flamefleet -f -a '(__kubectl_flamefleet)'
)sh";
// clang-format on

const std::vector<std::string>& Shells() {
  static const std::vector<std::string> shells = {"bash", "fish", "zsh"};
  return shells;
}

// The value of a flag among the words: "-n shop", "--namespace=shop".
std::string FlagValue(const std::vector<std::string>& words,
                      const std::vector<std::string>& names) {
  for (size_t i = 0; i < words.size(); ++i) {
    for (const std::string& name : names) {
      if (words[i] == name && i + 1 < words.size()) return words[i + 1];
      if (words[i].starts_with(name + "=")) return words[i].substr(name.size() + 1);
    }
  }
  return "";
}

// Pods of the namespace, and what makes them: "pay-1", "deployment/pay".
std::vector<std::string> NamesInCluster(const std::vector<std::string>& words) {
  constexpr std::chrono::seconds kPatience{3};  // somebody waits for it at a prompt
  ClusterFlags flags;
  flags.kubeconfig = FlagValue(words, {"--kubeconfig"});
  flags.context = FlagValue(words, {"--context"});
  flags.ns = FlagValue(words, {"-n", "--namespace"});
  flags.timeout = kPatience;
  const Result<std::unique_ptr<Cluster>> cluster = Cluster::Connect(flags);
  if (!cluster.ok()) return {};
  std::set<std::string> names;
  const Status listed =
      (*cluster)->List(kPods, (*cluster)->ns(), "", [&](const nlohmann::json& object) {
        const Result<api::Pod> pod = api::DecodePod(object);
        if (!pod.ok()) return;
        names.insert(pod->meta.name);
        std::string kind = pod->workload_kind;
        std::ranges::transform(kind, kind.begin(),
                               [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        const std::vector<std::string> kinds = WorkloadKindNames();
        if (std::ranges::find(kinds, kind) != kinds.end())
          names.insert(kind + "/" + pod->workload_name);
      });
  if (!listed.ok()) return {};
  return {names.begin(), names.end()};
}

// What may stand for the last of the words.
std::vector<std::string> Candidates(const std::vector<std::string>& words) {
  const std::vector<std::string> commands = CommandNames();
  if (words.size() == 1) return commands;
  const std::string& command = words.front();
  const std::string& before = words[words.size() - 2];
  if (command == "completion") return Shells();
  if (std::ranges::find(commands, command) == commands.end() || command == "version") return {};
  if (before == "-o" || before == "--output") {
    if (command == "status") return {"json", "wide", "yaml"};
    return command == "top" ? std::vector<std::string>{"json"} : std::vector<std::string>();
  }
  if (before == "--type") return {"block", "cpu", "goroutine", "memory", "mutex"};
  if (before.starts_with("-") || words.back().starts_with("-")) return {};
  return NamesInCluster(words);
}

}  // namespace

int CompleteCommand(int count, const char* const* arguments) {
  std::vector<std::string> words(arguments, arguments + count);
  if (words.empty()) words.emplace_back();
  for (const std::string& candidate : Candidates(words)) {
    if (candidate.starts_with(words.back())) std::puts(candidate.c_str());
  }
  std::puts(":4");
  return 0;
}

int CompletionCommand(int count, const char* const* arguments) {
  const std::string shell = count == 1 ? arguments[0] : "";
  if (shell == "bash") {
    std::fputs(kBash, stdout);
  } else if (shell == "zsh") {
    std::fputs(kZsh, stdout);
  } else if (shell == "fish") {
    std::fputs(kFish, stdout);
  } else {
    return RefuseUsage(InvalidArgumentError("completion '" + shell + "': want bash, fish or zsh"));
  }
  return 0;
}

}  // namespace flamefleet::kubectl
