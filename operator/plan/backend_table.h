// SPDX-License-Identifier: Apache-2.0
// BackendTable: the ProfilingBackends of the cluster by name, and which one is the default.
//
// Thread: any once built. Bounds: one entry per ProfilingBackend that is not being deleted.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/profiling_backend.h"
#include "operator/api/secret.h"
#include "operator/plan/annotations.h"
#include "operator/plan/fleet.h"

namespace flamefleet::plan {

class BackendTable {
 public:
  // `ns` is where the operator runs managed stores and reads Secrets. The default is the oldest
  // that says so; of equally old ones the first by name.
  BackendTable(const std::vector<const api::ProfilingBackend*>& backends, const std::string& ns,
               const api::SecretMap& secrets = {});

  // The backend of this name; of the default one for the empty name. nullptr: there is none.
  const Backend* Find(const std::string& name) const;
  // Why the backend's credentials are not known; nullptr: they are, or it needs none.
  const Problem* ProblemOf(const std::string& name) const;
  // Why nothing can be collected for the backend of this name, or for the default one; a Secret
  // that is not read yet is no reason. Nothing: it can.
  std::optional<Problem> WhyUnusable(const std::string& name) const;
  // Empty: there is none.
  const std::string& default_name() const { return default_name_; }
  std::vector<Backend> All() const;

 private:
  std::map<std::string, Backend> backends_;
  std::map<std::string, Problem> problems_;  // by backend
  std::string default_name_;
};

}  // namespace flamefleet::plan
