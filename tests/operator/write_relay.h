// SPDX-License-Identifier: Apache-2.0
// WriteRelay: plain HTTP/1.1 between a client and a server on this host, that counts the objects
// written through it and can tell a test of one before the client learns of it.
//
// Leases and Events are not counted: they come when they come.
//
// Thread: the test's; one thread inside. Bounds: a few connections, no pipelining, for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/mutex.h"

namespace flamefleet {

class WriteRelay {
 public:
  explicit WriteRelay(uint16_t server_port);
  ~WriteRelay();
  WriteRelay(const WriteRelay&) = delete;
  WriteRelay& operator=(const WriteRelay&) = delete;

  uint16_t port() const { return port_; }
  // Counts from zero; `on_write` is called on the inner thread when the server has done the `k`-th,
  // whose answer the client never gets. 0: never.
  void Arm(int k, std::function<void()> on_write = {});
  // True when the `k`-th write was done. Disarm says the same, and afterwards it stays so.
  bool fired() const;
  bool Disarm();

 private:
  struct Link {
    UniqueFd client;
    UniqueFd server;
    std::string head;      // of the request in progress, as far as it came
    size_t body_left = 0;  // of the request in progress
    bool writing = false;  // its answer is the next thing that comes
  };

  void Run(const std::stop_token& stop);
  void Accept();
  bool FromClient(Link& link);
  bool FromServer(Link& link);
  static void Follow(Link& link, std::string_view bytes);
  bool Count();

  const uint16_t server_port_;
  uint16_t port_ = 0;
  UniqueFd listener_;
  std::list<Link> links_;  // the inner thread's
  mutable Mutex mutex_;
  int writes_ FF_GUARDED_BY(mutex_) = 0;  // that the server has answered with success
  int kill_at_ FF_GUARDED_BY(mutex_) = 0;
  bool fired_ FF_GUARDED_BY(mutex_) = false;
  std::function<void()> on_write_ FF_GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flamefleet
