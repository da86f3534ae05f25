// SPDX-License-Identifier: Apache-2.0
// The client of OTLP profiles: ProfilesService/Export over gRPC, in the development version 1.
#pragma once

#include <chrono>
#include <memory>

#include "agent/push/push_client.h"
#include "base/status.h"

namespace flamefleet::agent {

// As CreateGrpcClient.
Result<std::shared_ptr<const PushClient>> CreateOtlpClient(const BackendConfig& config,
                                                           std::chrono::milliseconds timeout);

}  // namespace flamefleet::agent
