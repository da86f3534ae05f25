// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/flags.h"
#include "kubectl/cluster.h"
#include "kubectl/commands.h"
#include "kubectl/status_print.h"
#include "operator/render/print.h"

namespace flamefleet::kubectl {
namespace {

struct StatusOptions {
  ClusterFlags cluster;
  bool all_namespaces = false;
  std::string output;
  std::optional<WorkloadName> workload;
};

// The exit code. Of pods that somebody names all have to be fine; of a namespace none may fail.
int Judgement(const StatusOptions& options, const std::vector<PodStatus>& pods) {
  const bool well = std::ranges::all_of(pods, [&](const PodStatus& pod) {
    return options.workload ? IsFine(pod.state) : pod.state != State::kFailing;
  });
  return well ? 0 : kNotWell;
}

// Of a namespace or a workload nobody looks for pods that are over.
void DropEnded(const StatusOptions& options, std::vector<PodStatus>& pods) {
  if (options.workload && options.workload->IsPod()) return;
  std::erase_if(pods, [](const PodStatus& pod) { return pod.state == State::kEnded; });
}

Result<int> Run(const StatusOptions& options) {
  FF_ASSIGN_OR_RETURN(const std::unique_ptr<Cluster> cluster, Cluster::Connect(options.cluster));
  const std::string ns = options.all_namespaces ? "" : cluster->ns();
  FF_ASSIGN_OR_RETURN(const Snapshot snapshot, TakeSnapshot(*cluster, {ns, options.workload}));
  std::vector<std::string> notes = snapshot.notes;
  std::vector<PodStatus> pods = JudgePods(snapshot, notes);
  DropEnded(options, pods);
  std::vector<std::string> events;
  const bool one = options.workload && options.workload->IsPod();
  if (one) events = EventsOf(*cluster, snapshot.pods.front(), notes);

  if (options.output == "json") {
    std::puts(StatusJson(pods, events, notes).dump(2).c_str());
    return Judgement(options, pods);
  }
  if (options.output == "yaml") {
    std::fputs(render::ToYaml(StatusJson(pods, events, notes)).c_str(), stdout);
    return Judgement(options, pods);
  }
  for (const std::string& note : notes)
    PrintNote(note);
  if (pods.empty()) {
    std::fprintf(stderr, "No pods found%s.\n", ns.empty() ? "" : (" in namespace " + ns).c_str());
  } else if (one && options.output.empty()) {
    std::fputs(StatusText(pods.front(), events).c_str(), stdout);
  } else {
    const TableForm form{.wide = options.output == "wide", .namespaces = options.all_namespaces};
    std::fputs(StatusTable(pods, form).c_str(), stdout);
  }
  return Judgement(options, pods);
}

}  // namespace

int StatusCommand(int count, const char* const* arguments) {
  StatusOptions options;
  std::vector<std::string> names;
  Flags flags("kubectl flamefleet status [POD | KIND/NAME] [flags]",
              "Says of a pod, of the pods of a workload, or of all pods of a namespace whether "
              "they are profiled, and why not. Exits with 0 when they are, with 1 when a named pod "
              "is not profiled or a pod of the namespace fails, with 2 when there is no answer.");
  options.cluster.AddTo(flags);
  flags.Switch("all-namespaces", "pods of all namespaces", &options.all_namespaces);
  flags.Short('A', "all-namespaces");
  flags.Text("output", "FORM", "wide, json or yaml; default: for people", &options.output);
  flags.Short('o', "output");
  flags.Arguments(&names);
  if (const Status parsed = flags.Parse(count, arguments); !parsed.ok()) return RefuseUsage(parsed);
  if (flags.help_wanted()) {
    std::fputs(flags.Help().c_str(), stdout);
    return 0;
  }
  const auto forms = {"", "wide", "json", "yaml"};
  if (std::ranges::find(forms, options.output) == forms.end()) {
    return RefuseUsage(
        InvalidArgumentError("--output '" + options.output + "': want wide, json or yaml"));
  }
  if (!names.empty()) {
    const Result<WorkloadName> workload = ParseWorkloadName(names);
    if (!workload.ok()) return RefuseUsage(workload.status());
    if (options.all_namespaces)
      return RefuseUsage(InvalidArgumentError("--all-namespaces with a name"));
    options.workload = *workload;
  }
  const Result<int> code = Run(options);
  return code.ok() ? *code : Refuse(code.status());
}

}  // namespace flamefleet::kubectl
