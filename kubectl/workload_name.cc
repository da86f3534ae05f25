// SPDX-License-Identifier: Apache-2.0
#include "kubectl/workload_name.h"

#include <algorithm>

namespace flamefleet::kubectl {
namespace {

constexpr Resource kReplicaSets{"ReplicaSet", "apps/v1", "replicasets"};
constexpr Resource kJobs{"Job", "batch/v1", "jobs"};

struct KindNames {
  Resource resource;
  std::vector<std::string> names;
};

const std::vector<KindNames>& Kinds() {
  static const std::vector<KindNames> kinds = {
      {kPods, {"pod", "pods", "po"}},
      {kDeployments, {"deployment", "deployments", "deploy", "deployment.apps"}},
      {kStatefulSets, {"statefulset", "statefulsets", "sts", "statefulset.apps"}},
      {kDaemonSets, {"daemonset", "daemonsets", "ds", "daemonset.apps"}},
      {kReplicaSets, {"replicaset", "replicasets", "rs", "replicaset.apps"}},
      {kJobs, {"job", "jobs", "job.batch"}}};
  return kinds;
}

}  // namespace

bool IsObjectName(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

std::string WorkloadName::Text(const std::string& ns) const {
  return std::string(resource.kind) + " " + ns + "/" + name;
}

bool WorkloadName::Has(const api::Pod& pod) const {
  if (IsPod()) return pod.meta.name == name;
  return pod.workload_kind == resource.kind && pod.workload_name == name;
}

Result<WorkloadName> ParseWorkloadName(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.size() > 2) {
    return InvalidArgumentError("want one POD, KIND/NAME or KIND NAME");
  }
  std::string kind = "pod";
  std::string name = arguments.back();
  const size_t slash = arguments.front().find('/');
  if (arguments.size() == 2) {
    kind = arguments.front();
  } else if (slash != std::string::npos) {
    kind = arguments.front().substr(0, slash);
    name = arguments.front().substr(slash + 1);
  }
  if (!IsObjectName(name)) {
    return InvalidArgumentError("'" + arguments.back() + "': want POD, KIND/NAME or KIND NAME");
  }
  for (const KindNames& known : Kinds()) {
    if (std::ranges::find(known.names, kind) != known.names.end())
      return WorkloadName{known.resource, name};
  }
  std::string want;
  for (const KindNames& known : Kinds())
    want += (want.empty() ? "" : ", ") + known.names.front();
  return InvalidArgumentError("kind '" + kind + "': want one of " + want);
}

std::vector<std::string> WorkloadKindNames() {
  std::vector<std::string> names;
  for (const KindNames& known : Kinds())
    names.push_back(known.names.front());
  return names;
}

}  // namespace flamefleet::kubectl
