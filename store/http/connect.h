// SPDX-License-Identifier: Apache-2.0
// Connect unary calls: POST with one message in protobuf or JSON, gzip or not.
//
// Thread: any.
// Source: https://connectrpc.com/docs/protocol/
#pragma once

#include <optional>
#include <string>

#include "base/http/server.h"
#include "base/status.h"
#include "store/ingest/push.h"

namespace flamefleet::store {

HttpServerResponse ConnectError(int status, const char* code, const std::string& message);

// What is wrong with method, type, version or compression of a call; nothing when it can be read.
std::optional<HttpServerResponse> RefuseCall(const HttpServerRequest& request);
// Of a request that RefuseCall lets pass.
PushEncoding EncodingOf(const HttpServerRequest& request);
// The body, decompressed. kResourceExhausted: over `max_bytes`.
Result<std::string> ReadCall(const HttpServerRequest& request, size_t max_bytes);

}  // namespace flamefleet::store
