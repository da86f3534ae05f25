// SPDX-License-Identifier: Apache-2.0
// CreateMissing: makes the objects that a new cluster begins with, once their kinds are there. What
// exists already is left as it is: it belongs to the user.
//
// Thread: one; blocks. Bounds: waits at most kKindsTimeout for the CRDs.
// Errors: kInvalidArgument a file that is not one manifest of an AgentPool or ProfilingBackend, or
// that the API server refuses; kDeadlineExceeded the kinds did not appear.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "operator/kube/rest_client.h"

namespace flamefleet {

inline constexpr std::chrono::minutes kKindsTimeout{2};

// All *.yaml files of `folder`, each one manifest.
Status CreateMissing(RestClient& client, const std::string& folder, const Clock& clock,
                     const std::stop_token& stop);

}  // namespace flamefleet
