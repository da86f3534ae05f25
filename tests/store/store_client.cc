// SPDX-License-Identifier: Apache-2.0
#include "tests/store/store_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/fd.h"
#include "base/http/url.h"
#include "base/pprof/profile.h"
#include "proto/pyroscope/push.pb.h"

namespace flamefleet::store {
namespace {

constexpr timeval kDeadline = {.tv_sec = 20, .tv_usec = 0};

UniqueFd Connect(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &kDeadline, sizeof kDeadline);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kDeadline, sizeof kDeadline);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    fd.reset();
  }
  return fd;
}

std::string Exchange(uint16_t port, const std::string& request) {
  const UniqueFd fd = Connect(port);
  if (!fd.ok()) return "";
  for (size_t sent = 0; sent < request.size();) {
    const ssize_t n = ::send(fd.get(), request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) break;  // the server may have answered already
    sent += static_cast<size_t>(n);
  }
  std::string all;
  std::string piece(64 << 10, '\0');
  for (ssize_t n = 0; (n = ::recv(fd.get(), piece.data(), piece.size(), 0)) > 0;) {
    all.append(piece.data(), static_cast<size_t>(n));
  }
  return all;
}

}  // namespace

Reply Send(uint16_t port, const std::string& method, const std::string& target,
           const Headers& headers, const std::string& body) {
  std::string request = method + " " + target + " HTTP/1.1\r\nHost: store\r\nConnection: close\r\n";
  if (!body.empty() || method == "POST") {
    request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  }
  for (const auto& [name, value] : headers)
    request += name + ": " + value + "\r\n";
  const std::string answer = Exchange(port, request + "\r\n" + body);

  Reply reply;
  const size_t head_end = answer.find("\r\n\r\n");
  if (head_end == std::string::npos) return reply;
  std::istringstream head(answer.substr(0, head_end));
  std::string line;
  std::getline(head, line);
  while (std::getline(head, line)) {
    const size_t colon = line.find(':');
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string value = line.substr(std::min(line.size(), colon + 2));
    if (value.ends_with('\r')) value.pop_back();
    reply.headers[name] = value;
  }
  reply.body = answer.substr(head_end + 4);
  const auto length = reply.headers.find("content-length");
  if (length != reply.headers.end() && std::stoul(length->second) != reply.body.size())
    return reply;
  reply.status = std::stoi(answer.substr(answer.find(' ') + 1));
  return reply;
}

Reply Get(uint16_t port, const std::string& path, const std::map<std::string, std::string>& query) {
  std::string target = path;
  for (const auto& [name, value] : query) {
    target += (target == path ? "?" : "&") + name + "=" + UrlEncode(value);
  }
  return Send(port, "GET", target);
}

std::string PushBody(const Labels& labels, const std::vector<std::string>& profiles) {
  pyroscope::PushRequest request;
  auto* const series = request.add_series();
  for (const auto& [name, value] : labels) {
    auto* const label = series->add_labels();
    label->set_name(name);
    label->set_value(value);
  }
  for (const std::string& profile : profiles)
    series->add_samples()->set_raw_profile(profile);
  return request.SerializeAsString();
}

Reply Push(uint16_t port, const std::string& body, const std::string& content_type) {
  return Send(port, "POST", "/push.v1.PusherService/Push", {{"Content-Type", content_type}}, body);
}

std::string CpuProfileAt(int64_t time_ns) {
  std::ifstream in("tests/data/pprof/hand_cpu2.pb.gz", std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  pprof::Profile profile;
  FF_CHECK(pprof::Decode(bytes.str(), pprof::DecodeLimits{}, &profile).ok());
  profile.time_ns = time_ns;
  std::string encoded;
  pprof::Encode(profile, &encoded);
  return encoded;
}

Labels SeriesLabels(const std::string& service, const std::string& name) {
  return {{"__name__", name}, {"service_name", service}};
}

}  // namespace flamefleet::store
