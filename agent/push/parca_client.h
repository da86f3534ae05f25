// SPDX-License-Identifier: Apache-2.0
// The client of Parca: ProfileStoreService/WriteRaw over gRPC.
#pragma once

#include <chrono>
#include <memory>

#include "agent/push/push_client.h"
#include "base/status.h"

namespace flamefleet::agent {

// As CreateGrpcClient.
Result<std::shared_ptr<const PushClient>> CreateParcaClient(const BackendConfig& config,
                                                            std::chrono::milliseconds timeout);

}  // namespace flamefleet::agent
