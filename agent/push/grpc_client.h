// SPDX-License-Identifier: Apache-2.0
// GrpcClient: pushes by a unary call of gRPC, plain text or TLS; which call is the protocol's.
//
// A channel whose call found no server, or got no answer in time, is given up: the next call
// connects anew. So a connection whose other end vanished costs one time-out, and gRPC's own
// back-off, up to two minutes, never hides a server that is back.
//
// Thread: any; calls block and may run in parallel. Bounds: the time-out of a push.
// Errors: Create: kInvalidArgument, as PushClient.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/push/push_client.h"
#include "base/status.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace flamefleet::agent {

// Makes the call and waits for its answer. `body` is what the spool keeps; nothing is sent, nor
// returned, when that is damaged.
using GrpcCall = std::function<std::optional<Status>(
    const std::shared_ptr<grpc::Channel>&, grpc::ClientContext*, const std::string& body)>;

struct GrpcProtocol {
  GrpcCall call;  // from any thread
  std::map<std::string, std::string> headers;
};

Result<std::shared_ptr<const PushClient>> CreateGrpcClient(const BackendConfig& config,
                                                           GrpcProtocol protocol,
                                                           std::chrono::milliseconds timeout);

}  // namespace flamefleet::agent
