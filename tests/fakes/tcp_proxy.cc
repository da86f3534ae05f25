// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/tcp_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread.h"

namespace flamefleet {
namespace {

// How soon the knobs are looked at.
constexpr int kPollMilliseconds = 5;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

enum class Copied { kNothing, kSome, kEnd };

// Copies what is there; `size` is increased by it.
Copied Copy(int from, int to, size_t& size) {
  std::array<char, 4096> buffer;
  const ssize_t got = recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN ? Copied::kNothing : Copied::kEnd;
  if (got == 0) return Copied::kEnd;
  size += static_cast<size_t>(got);
  return send(to, buffer.data(), static_cast<size_t>(got), MSG_NOSIGNAL) == got ? Copied::kSome
                                                                                : Copied::kEnd;
}

// Reads "CONNECT host:port" and its headers, and agrees.
bool AnswerConnect(int client) {
  std::string head;
  for (char c = 0; !head.ends_with("\r\n\r\n"); head += c) {
    if (recv(client, &c, 1, 0) != 1) return false;
  }
  constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\n\r\n";
  return head.starts_with("CONNECT ") && send(client, kAnswer.data(), kAnswer.size(),
                                              MSG_NOSIGNAL) == static_cast<ssize_t>(kAnswer.size());
}

}  // namespace

TcpProxy::TcpProxy(uint16_t server_port, bool http)
    : server_port_(server_port),
      http_(http),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  FF_CHECK(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  FF_CHECK(listen(listener_.get(), 64) == 0);
  FF_CHECK(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = StartThread("tcp-proxy", [this](const std::stop_token& stop) { Run(stop); });
}

TcpProxy::~TcpProxy() = default;

void TcpProxy::Accept() {
  Link link{UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)),
            UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  ++accepted_;
  if (down_) return;
  const sockaddr_in address = Loopback(server_port_);
  if (connect(link.server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
      0) {
    return;
  }
  if (http_ && !AnswerConnect(link.client.get())) return;
  links_.push_back(std::move(link));
}

bool TcpProxy::Forward(Link& link) {
  size_t to_server = 0;
  if (Copy(link.client.get(), link.server.get(), to_server) == Copied::kEnd) return false;
  if (Copy(link.server.get(), link.client.get(), link.from_server) == Copied::kEnd) return false;
  return cut_after_ == 0 || link.from_server < cut_after_;
}

void TcpProxy::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> waiting = {{listener_.get(), POLLIN, 0}};
    for (const Link& link : links_) {
      if (frozen_) break;
      waiting.push_back({link.client.get(), POLLIN, 0});
      waiting.push_back({link.server.get(), POLLIN, 0});
    }
    poll(waiting.data(), waiting.size(), kPollMilliseconds);
    if (cut_all_.exchange(false)) links_.clear();
    if ((waiting[0].revents & POLLIN) != 0) Accept();
    if (!frozen_) {
      std::erase_if(links_, [this](Link& link) { return !Forward(link); });
    }
  }
}

}  // namespace flamefleet
