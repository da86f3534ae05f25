// SPDX-License-Identifier: Apache-2.0
// TcpProxy: a network that a test can break, between a client and a real server on this host.
//
// Thread: the test's; one thread inside. Bounds: a few connections, for tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <thread>

#include "base/fd.h"

namespace flamefleet {

class TcpProxy {
 public:
  // Listens on a port of its own and forwards to `server_port`, both on 127.0.0.1. `http`: as an
  // HTTP proxy, that is to who says CONNECT first.
  explicit TcpProxy(uint16_t server_port, bool http = false);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  uint16_t port() const { return port_; }

  // Cuts every connection, now.
  void CutAll() { cut_all_ = true; }
  // Cuts each connection once the server has sent this many more bytes on it; 0: never.
  void CutAfter(size_t bytes) { cut_after_ = bytes; }
  // While down, new connections are closed at once.
  void SetDown(bool down) { down_ = down; }
  // While frozen, nothing is forwarded and nothing is closed: a half-open connection.
  void SetFrozen(bool frozen) { frozen_ = frozen; }
  // Connections accepted so far.
  int accepted() const { return accepted_; }

 private:
  struct Link {
    UniqueFd client;
    UniqueFd server;
    size_t from_server = 0;  // bytes
  };

  void Run(const std::stop_token& stop);
  void Accept();
  // False when the link is over.
  bool Forward(Link& link);

  const uint16_t server_port_;
  const bool http_;
  uint16_t port_ = 0;
  UniqueFd listener_;
  std::list<Link> links_;  // the inner thread's
  std::atomic<bool> cut_all_ = false;
  std::atomic<bool> down_ = false;
  std::atomic<bool> frozen_ = false;
  std::atomic<size_t> cut_after_ = 0;
  std::atomic<int> accepted_ = 0;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flamefleet
