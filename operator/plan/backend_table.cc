// SPDX-License-Identifier: Apache-2.0
#include "operator/plan/backend_table.h"

#include <tuple>

#include "base/clock.h"
#include "base/reasons.h"
#include "operator/plan/backend_secrets.h"
#include "operator/plan/names.h"

namespace flamefleet::plan {
namespace {

// reject-older-than of Pyroscope, by default.
constexpr int64_t kPyroscopeWindowNs = 3600 * kNanosPerSecond;

// 0: none is too old.
int64_t IngestionWindow(const api::ProfilingBackendSpec& spec) {
  if (spec.ingestion_window_ns) return *spec.ingestion_window_ns;
  if (spec.type == api::BackendType::kPyroscope) return kPyroscopeWindowNs;
  return spec.managed_store ? spec.managed_store->retention_ns : 0;
}

}  // namespace

BackendTable::BackendTable(const std::vector<const api::ProfilingBackend*>& backends,
                           const std::string& ns, const api::SecretMap& secrets) {
  const api::ProfilingBackend* oldest = nullptr;
  const auto age = [](const api::ProfilingBackend& backend) {
    return std::tie(backend.meta.creation_ns, backend.meta.name);
  };
  for (const api::ProfilingBackend* backend : backends) {
    if (backend->meta.deleting) continue;
    const std::string& name = backend->meta.name;
    Backend& entry = backends_[name];
    entry.name = name;
    entry.endpoint = backend->spec.managed_store ? StoreEndpoint(name, ns) : backend->spec.endpoint;
    if (backend->spec.type == api::BackendType::kParca) entry.protocol = BackendProtocol::kParca;
    if (backend->spec.type == api::BackendType::kOtlp) entry.protocol = BackendProtocol::kOtlp;
    entry.tenant_id = backend->spec.tenant_id;
    entry.server_name = backend->spec.tls.server_name;
    entry.insecure_skip_verify = backend->spec.tls.insecure_skip_verify;
    entry.bytes_per_second = backend->spec.limits.bytes_per_second;
    entry.max_profile_bytes = backend->spec.limits.max_profile_bytes;
    entry.ingestion_window_ns = IngestionWindow(backend->spec);
    if (auto problem = FillCredentials(backend->spec, ns, secrets, entry)) {
      entry.hold = true;
      problems_.emplace(name, *std::move(problem));
    }
    if (backend->spec.is_default && (oldest == nullptr || age(*backend) < age(*oldest)))
      oldest = backend;
  }
  if (oldest != nullptr) default_name_ = oldest->meta.name;
}

const Backend* BackendTable::Find(const std::string& name) const {
  const auto found = backends_.find(name.empty() ? default_name_ : name);
  return found == backends_.end() ? nullptr : &found->second;
}

const Problem* BackendTable::ProblemOf(const std::string& name) const {
  const auto found = problems_.find(name);
  return found == problems_.end() ? nullptr : &found->second;
}

std::optional<Problem> BackendTable::WhyUnusable(const std::string& name) const {
  const Backend* backend = Find(name);
  if (backend == nullptr) {
    return Problem{reasons::kNoBackend, name.empty()
                                            ? "no ProfilingBackend says default: true"
                                            : "there is no ProfilingBackend \"" + name + "\""};
  }
  const Problem* problem = ProblemOf(backend->name);
  // What is not read yet is no news: it is for a moment after the start.
  if (problem == nullptr || problem->reason == reasons::kSecretNotRead) return std::nullopt;
  return Problem{problem->reason,
                 "ProfilingBackend \"" + backend->name + "\": " + problem->message};
}

std::vector<Backend> BackendTable::All() const {
  std::vector<Backend> all;
  all.reserve(backends_.size());
  for (const auto& [name, backend] : backends_)
    all.push_back(backend);
  return all;
}

}  // namespace flamefleet::plan
