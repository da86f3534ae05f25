// SPDX-License-Identifier: Apache-2.0
// ParcaClient: pushes to Parca: ProfileStoreService/WriteRaw over gRPC, plain text or TLS.
//
// A channel whose call found no server, or got no answer in time, is given up: the next call
// connects anew. So a connection whose other end vanished costs one time-out, and gRPC's own
// back-off, up to two minutes, never hides a server that is back.
//
// Thread: any; calls block and may run in parallel. Bounds: the time-out of a push.
// Errors: Create: kInvalidArgument, as PushClient.
#pragma once

#include <chrono>
#include <memory>

#include "agent/push/push_client.h"
#include "base/status.h"

namespace flamefleet::agent {

Result<std::shared_ptr<const PushClient>> CreateParcaClient(const BackendConfig& config,
                                                            std::chrono::milliseconds timeout);

}  // namespace flamefleet::agent
