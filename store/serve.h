// SPDX-License-Identifier: Apache-2.0
// The store as a server: its addresses, until a signal ends it.
//
// Thread: main, which waits. Threads inside: those of the servers, and `auth`, which reads the
// credentials again. Errors: what keeps it from starting.
#pragma once

#include <chrono>

#include "base/status.h"
#include "store/options.h"

namespace flamefleet::store {

// How long a changed --auth-file takes until it counts.
inline constexpr std::chrono::seconds kAuthInterval{2};

Status Serve(const StoreOptions& options, int64_t max_bytes, int64_t query_memory);

}  // namespace flamefleet::store
