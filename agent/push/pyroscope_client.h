// SPDX-License-Identifier: Apache-2.0
// The client of the Pyroscope push API (Connect, unary, over HTTP), which the embedded store speaks
// as well.
#pragma once

#include <chrono>
#include <memory>

#include "agent/push/push_client.h"
#include "base/status.h"

namespace flamefleet::agent {

// As PushClient::Create.
Result<std::shared_ptr<const PushClient>> CreatePyroscopeClient(const BackendConfig& config,
                                                                std::chrono::milliseconds timeout);

}  // namespace flamefleet::agent
