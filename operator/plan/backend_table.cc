// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/backend_table.h"

#include <tuple>

#include "operator/plan/names.h"

namespace flamefleet::plan {

BackendTable::BackendTable(const std::vector<const api::ProfilingBackend*>& backends,
                           const std::string& ns) {
  const api::ProfilingBackend* oldest = nullptr;
  const auto age = [](const api::ProfilingBackend& backend) {
    return std::tie(backend.meta.creation_ns, backend.meta.name);
  };
  for (const api::ProfilingBackend* backend : backends) {
    if (backend->meta.deleting) continue;
    const std::string& name = backend->meta.name;
    backends_.emplace(name, Backend{name, backend->spec.managed_store ? StoreEndpoint(name, ns)
                                                                      : backend->spec.endpoint});
    if (backend->spec.is_default && (oldest == nullptr || age(*backend) < age(*oldest)))
      oldest = backend;
  }
  if (oldest != nullptr) default_name_ = oldest->meta.name;
}

const Backend* BackendTable::Find(const std::string& name) const {
  const auto found = backends_.find(name.empty() ? default_name_ : name);
  return found == backends_.end() ? nullptr : &found->second;
}

std::vector<Backend> BackendTable::All() const {
  std::vector<Backend> all;
  all.reserve(backends_.size());
  for (const auto& [name, backend] : backends_)
    all.push_back(backend);
  return all;
}

}  // namespace flamefleet::plan
