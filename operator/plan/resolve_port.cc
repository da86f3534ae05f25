// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/reasons.h"
#include "operator/plan/resolve.h"

namespace flamefleet::plan {
namespace {

// The containers that may serve pprof: init containers have ended.
std::vector<const api::Container*> Candidates(const api::Pod& pod,
                                              const std::vector<std::string>& names) {
  std::vector<const api::Container*> candidates;
  for (const api::Container& container : pod.containers) {
    const bool named = names.empty() || std::ranges::find(names, container.name) != names.end();
    if (named && container.kind != api::ContainerKind::kInit) candidates.push_back(&container);
  }
  return candidates;
}

// Whose series it becomes when no container declares the port: the only one that it can be.
std::string OnlyOne(const std::vector<const api::Container*>& candidates) {
  const api::Container* only = nullptr;
  for (const api::Container* container : candidates) {
    if (container->kind != api::ContainerKind::kMain) continue;
    if (only != nullptr) return "";
    only = container;
  }
  return only == nullptr ? "" : only->name;
}

Problem Conflict(const std::string& what, int32_t a, int32_t b) {
  return {reasons::kConflictingPorts,
          what + ": both " + std::to_string(a) + " and " + std::to_string(b)};
}

std::variant<ResolvedPort, Problem> ByName(const std::vector<const api::Container*>& candidates,
                                           const std::string& name) {
  ResolvedPort found;
  for (const api::Container* container : candidates) {
    for (const api::ContainerPort& port : container->ports) {
      if (port.name != name) continue;
      if (found.number != 0 && found.number != port.number) {
        return Conflict("port \"" + name + "\"", found.number, port.number);
      }
      if (found.number == 0) found = {port.number, container->name};
    }
  }
  if (found.number == 0)
    return Problem{reasons::kPortNotFound, "no container declares a port named \"" + name + "\""};
  return found;
}

}  // namespace

std::variant<ResolvedPort, Problem> ResolvePort(const api::Pod& pod, const api::PortRef& port,
                                                const std::vector<std::string>& containers) {
  const std::vector<const api::Container*> candidates = Candidates(pod, containers);
  if (!port.name.empty()) {
    std::variant<ResolvedPort, Problem> named = ByName(candidates, port.name);
    if (const auto* found = std::get_if<ResolvedPort>(&named);
        found != nullptr && port.number != 0 && port.number != found->number) {
      return Conflict("number and name \"" + port.name + "\" of the port", port.number,
                      found->number);
    }
    return named;
  }
  for (const api::Container* container : candidates) {
    for (const api::ContainerPort& declared : container->ports) {
      if (declared.number == port.number) return ResolvedPort{port.number, container->name};
    }
  }
  return ResolvedPort{port.number, OnlyOne(candidates)};
}

}  // namespace flamefleet::plan
