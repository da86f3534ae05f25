// SPDX-License-Identifier: Apache-2.0
// The credentials of a backend, from the Secrets that it names.
//
// Thread: any; pure. Errors: a Problem with the names of Secret and key, never with a value.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/api/profiling_backend.h"
#include "operator/api/secret.h"
#include "operator/plan/annotations.h"
#include "operator/plan/fleet.h"

namespace flamefleet::plan {

// The Secrets that the backends name, and those of managed stores.
std::set<std::string> SecretNames(
    const std::vector<std::shared_ptr<const api::ProfilingBackend>>& backends);

// Fills the credentials of `backend`, whose name is set; the first thing that is wrong:
// SecretNotFound, InvalidSecret, or SecretNotRead while the Secret is not known yet, or what a
// managed store wants is not made yet. `ns` is the Secrets' namespace.
std::optional<Problem> FillCredentials(const api::ProfilingBackendSpec& spec, const std::string& ns,
                                       const api::SecretMap& secrets, Backend& backend);

}  // namespace flamefleet::plan
