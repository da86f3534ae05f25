// SPDX-License-Identifier: Apache-2.0
// RawSocket and RawServer: TCP without HTTP, for tests that misbehave on the wire.
//
// Thread: one owner. Bounds: every wait ends after kSocketDeadline. Errors: a failed test
// assertion.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/fd.h"

namespace flamefleet {

constexpr int kSocketDeadlineSeconds = 20;

inline sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class RawSocket {
 public:
  explicit RawSocket(int fd) : fd_(fd) {
    const timeval deadline = {.tv_sec = kSocketDeadlineSeconds, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
  }

  static RawSocket Connect(uint16_t port) {
    RawSocket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = Loopback(port);
    EXPECT_EQ(
        ::connect(socket.fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
        0);
    return socket;
  }

  // False when the other side no longer takes it.
  bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // One read: "" at the end, at a reset and at the deadline.
  std::string Receive() const {
    std::string buffer(64 << 10, '\0');
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    buffer.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return buffer;
  }

  // Everything until the other side closes.
  std::string ReceiveAll() const {
    std::string all;
    for (std::string piece = Receive(); !piece.empty(); piece = Receive())
      all += piece;
    return all;
  }

  // Until `end` was seen.
  std::string ReceiveUntil(std::string_view end) const {
    std::string all;
    while (all.find(end) == std::string::npos) {
      const std::string piece = Receive();
      if (piece.empty()) break;
      all += piece;
    }
    return all;
  }

  // True when the other side closed or reset, false when it said something or nothing in time.
  bool IsClosedByPeer() const {
    char byte = 0;
    const ssize_t got = ::recv(fd_.get(), &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

  void Close() { fd_.reset(); }

 private:
  UniqueFd fd_;
};

// Listens on a port of 127.0.0.1 and runs `serve` for each connection, one after another, on a
// thread of its own.
class RawServer {
 public:
  explicit RawServer(std::function<void(RawSocket&)> serve)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, serve = std::move(serve)] {
      for (;;) {
        const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        RawSocket socket(fd);
        serve(socket);
      }
    });
  }
  ~RawServer() { ::shutdown(listener_.get(), SHUT_RDWR); }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  uint16_t port() const { return port_; }
  std::string Url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::jthread thread_;  // last: joined first
};

}  // namespace flamefleet
