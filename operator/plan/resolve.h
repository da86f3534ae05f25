// SPDX-License-Identifier: Apache-2.0
// Resolve: one request for one profile type, with all its sources, to the collections that serve
// it; their askers are left to the caller.
//
// Thread: any; pure. Errors: a Problem: the first thing that makes the request impossible.
#pragma once

#include <variant>
#include <vector>

#include "operator/plan/pod_plan.h"

namespace flamefleet::plan {

struct Request {
  ProfileType type = ProfileType::kCpu;
  const api::ProfilingTarget* target = nullptr;  // nullptr: only annotations ask
  const api::ProfileSpec* profile = nullptr;     // of the target
  // What annotations add where the target says nothing; the first wins.
  std::vector<const AnnotatedProfile*> annotations;
  std::string default_path;
};

std::variant<std::vector<Collection>, Problem> Resolve(const Request& request,
                                                       const PodInput& input,
                                                       const StringMap& labels);

// A port of the pod, and the container that declares it (empty: none does, and the pod has
// several).
struct ResolvedPort {
  int32_t number = 0;
  std::string container;
};
// Looks only at `containers`, unless that is empty. Problem: PortNotFound or ConflictingPorts.
std::variant<ResolvedPort, Problem> ResolvePort(const api::Pod& pod, const api::PortRef& port,
                                                const std::vector<std::string>& containers);

}  // namespace flamefleet::plan
