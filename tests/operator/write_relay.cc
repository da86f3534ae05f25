// SPDX-License-Identifier: Apache-2.0
#include "tests/operator/write_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "base/status.h"
#include "base/thread.h"

namespace flamefleet {
namespace {

constexpr int kPollMilliseconds = 20;

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// What is there now; false: the connection is over.
bool Receive(int from, std::string& bytes) {
  std::array<char, 16384> buffer;
  const ssize_t got = recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) bytes.assign(buffer.data(), static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EAGAIN);
}

bool SendAll(int to, const std::string& bytes) {
  return send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

size_t ContentLength(std::string head) {
  std::ranges::transform(head, head.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::string_view kName = "\r\ncontent-length:";
  const size_t at = head.find(kName);
  return at == std::string::npos ? 0 : std::strtoul(head.c_str() + at + kName.size(), nullptr, 10);
}

bool IsCountedWrite(const std::string& head) {
  const std::string line = head.substr(0, head.find("\r\n"));
  return !line.starts_with("GET ") && line.find("/leases") == std::string::npos &&
         line.find("/events") == std::string::npos;
}

}  // namespace

WriteRelay::WriteRelay(uint16_t server_port)
    : server_port_(server_port), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  FF_CHECK(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  FF_CHECK(listen(listener_.get(), 64) == 0);
  FF_CHECK(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = StartThread("write-relay", [this](const std::stop_token& stop) { Run(stop); });
}

WriteRelay::~WriteRelay() = default;

void WriteRelay::Arm(int k, std::function<void()> on_write) {
  MutexLock lock(&mutex_);
  writes_ = 0;
  fired_ = false;
  kill_at_ = k;
  on_write_ = std::move(on_write);
}

bool WriteRelay::fired() const {
  MutexLock lock(&mutex_);
  return fired_;
}

bool WriteRelay::Disarm() {
  MutexLock lock(&mutex_);
  kill_at_ = 0;
  return fired_;
}

void WriteRelay::Accept() {
  Link link{UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)),
            UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
            {}};
  const sockaddr_in address = Loopback(server_port_);
  if (connect(link.server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
      0) {
    links_.push_back(std::move(link));
  }
}

// Keeps track of where requests begin and end.
void WriteRelay::Follow(Link& link, std::string_view bytes) {
  while (!bytes.empty()) {
    if (link.body_left > 0) {
      const size_t part = std::min(link.body_left, bytes.size());
      link.body_left -= part;
      bytes.remove_prefix(part);
      continue;
    }
    const size_t before = link.head.size();
    link.head += bytes;
    const size_t end = link.head.find("\r\n\r\n");
    if (end == std::string::npos) return;
    bytes.remove_prefix(end + 4 - before);
    link.head.resize(end + 4);
    link.body_left = ContentLength(link.head);
    link.writing = IsCountedWrite(link.head);
    link.head.clear();
  }
}

bool WriteRelay::FromClient(Link& link) {
  std::string bytes;
  if (!Receive(link.client.get(), bytes)) return false;
  if (bytes.empty()) return true;
  Follow(link, bytes);
  return SendAll(link.server.get(), bytes);
}

bool WriteRelay::FromServer(Link& link) {
  std::string bytes;
  if (!Receive(link.server.get(), bytes)) return false;
  if (bytes.empty()) return true;
  if (std::exchange(link.writing, false) && bytes.starts_with("HTTP/1.1 2") && Count()) {
    return false;
  }
  return SendAll(link.client.get(), bytes);
}

// True when this was the write to be told of.
bool WriteRelay::Count() {
  MutexLock lock(&mutex_);
  if (++writes_ != kill_at_) return false;
  on_write_();
  fired_ = true;
  return true;
}

void WriteRelay::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> waiting = {{listener_.get(), POLLIN, 0}};
    for (const Link& link : links_) {
      waiting.push_back({link.client.get(), POLLIN, 0});
      waiting.push_back({link.server.get(), POLLIN, 0});
    }
    poll(waiting.data(), waiting.size(), kPollMilliseconds);
    if ((waiting[0].revents & POLLIN) != 0) Accept();
    std::erase_if(links_, [this](Link& link) { return !FromClient(link) || !FromServer(link); });
  }
}

}  // namespace flamefleet
