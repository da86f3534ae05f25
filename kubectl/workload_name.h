// SPDX-License-Identifier: Apache-2.0
// WorkloadName: a pod, or what makes pods, as people name it to kubectl: "NAME" (a pod),
// "pod/NAME", "deployment/NAME", "deploy NAME".
//
// Thread: any; pure. Errors: kInvalidArgument; the message says which kinds there are.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "operator/api/pod.h"
#include "operator/kube/resource.h"

namespace flamefleet::kubectl {

struct WorkloadName {
  Resource resource;
  std::string name;

  bool IsPod() const { return resource.kind == kPods.kind; }
  // "Deployment shop/payments"
  std::string Text(const std::string& ns) const;
  // Whether `pod`, of the same namespace, is it or is made by it.
  bool Has(const api::Pod& pod) const;
};

// What names of objects are made of.
bool IsObjectName(const std::string& name);

// The arguments after the command's name: one, or a kind and a name.
Result<WorkloadName> ParseWorkloadName(const std::vector<std::string>& arguments);

// The names of the kinds: "pod", "deployment", ...
std::vector<std::string> WorkloadKindNames();

}  // namespace flamefleet::kubectl
