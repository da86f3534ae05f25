// SPDX-License-Identifier: Apache-2.0
// RawSocket and RawListener: TCP without HTTP, for tests that misbehave on the wire.
//
// Thread: one owner. Bounds: every wait ends after kSocketDeadline. Errors: a failed test
// assertion.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdint>
#include <string>
#include <string_view>

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

class RawListener {
 public:
  RawListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(fd_.get(), 16), 0);
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    const timeval deadline = {.tv_sec = kSocketDeadlineSeconds, .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
  }
  uint16_t port() const { return port_; }
  RawSocket Accept() const {
    return RawSocket(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  UniqueFd fd_;
  uint16_t port_ = 0;
};

}  // namespace flamefleet
