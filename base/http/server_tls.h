// SPDX-License-Identifier: Apache-2.0
// ServerTls: the certificate of an HttpServer, as its files say at the moment. Private to this
// folder.
//
// Thread: one. Bounds: kMaxPemBytes a file; the files are looked at every kLookInterval at most.
// Errors: Create: what is wrong with which file. Later a pair that cannot be used is logged and the
//         one before is served on.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "base/http/server.h"
#include "base/status.h"

namespace flamefleet {

class ServerTls {
 public:
  static constexpr size_t kMaxPemBytes = 1 << 20;
  static constexpr std::chrono::seconds kLookInterval{1};

  static Result<std::unique_ptr<ServerTls>> Create(const HttpServerTls& files);

  // For a connection that begins; valid as long as it is held.
  std::shared_ptr<boost::asio::ssl::context> Context();

 private:
  explicit ServerTls(HttpServerTls files) : files_(std::move(files)) {}
  Status Load();

  const HttpServerTls files_;
  std::string pems_;  // what the context was made of
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::chrono::steady_clock::time_point next_look_;
  bool failing_ = false;  // the last look: logged when it changes
};

}  // namespace flamefleet
