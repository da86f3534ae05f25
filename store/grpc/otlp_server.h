// SPDX-License-Identifier: Apache-2.0
// OtlpServer: OTLP profiles over gRPC. A call becomes the request POST /v1development/profiles of
// the HTTP handler, with its credentials and its tenant, and the answer the status of the call: so
// both ways have one set of rules, limits and counters.
//
// Thread: Create and the destructor from one thread; the handler runs on kCallThreads threads.
// TLS:    the files are read again when they change.
// Bounds: kMaxMessageBytes as it comes, what the handler allows once it is unpacked; kMaxCalls wait
//         for a thread, a further one is UNAVAILABLE; kMaxMemory for what gRPC has received.
// Errors: Create: kUnavailable, the address cannot be had.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/http/server.h"
#include "base/status.h"

namespace flamefleet::store {

class OtlpServer {
 public:
  static constexpr size_t kCallThreads = 8;
  static constexpr size_t kMaxCalls = 64;
  static constexpr int kMaxMessageBytes = 64 << 20;
  static constexpr size_t kMaxMemory = size_t{256} << 20;

  static Result<std::unique_ptr<OtlpServer>> Create(const std::string& listen,
                                                    const std::optional<HttpServerTls>& tls,
                                                    HttpHandler handler);
  ~OtlpServer();
  OtlpServer(const OtlpServer&) = delete;
  OtlpServer& operator=(const OtlpServer&) = delete;

  uint16_t port() const;

 private:
  class Impl;
  explicit OtlpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace flamefleet::store
