// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/environment_proxy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

namespace flamefleet {
namespace {

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

constexpr const char* kHttp = "http://";
constexpr const char* kHttps = "https://";

std::string LowerCase(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Of the two cases of a variable's name.
std::string Value(const Environment& environment, const std::string& name) {
  const std::string upper = environment(name).value_or("");
  return upper.empty() ? environment(LowerCase(name)).value_or("") : upper;
}

// "host:port" in two; without a port that is empty.
std::pair<std::string, std::string> SplitPort(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

// An IPv4 address as a number.
std::optional<uint32_t> AddressOf(const std::string& text) {
  in_addr address{};
  if (inet_pton(AF_INET, text.c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

// "10.0.0.0/8"
bool IsInRange(uint32_t address, const std::string& range) {
  const size_t slash = range.find('/');
  const auto network = AddressOf(range.substr(0, slash));
  int bits = -1;
  const char* const end = range.data() + range.size();
  const auto [last, error] = std::from_chars(range.data() + slash + 1, end, bits);
  if (!network || error != std::errc() || last != end || bits < 0 || bits > 32) return false;
  const uint32_t mask = bits == 0 ? 0 : ~uint32_t{0} << (32 - bits);
  return (address & mask) == (*network & mask);
}

// Whether an entry of $NO_PROXY, in lower case, means the server.
bool Means(const std::string& entry, const std::string& host, const std::string& port) {
  if (entry == "*") return true;
  const auto address = AddressOf(host);
  if (entry.find('/') != std::string::npos) return address && IsInRange(*address, entry);
  auto [name, only_port] = SplitPort(entry);
  if (name.empty() || (!only_port.empty() && only_port != port)) return false;
  if (AddressOf(name)) return name == host;
  if (name.starts_with("*.")) name.erase(0, 1);
  if (name.starts_with('.')) return host.ends_with(name);
  return host == name || host.ends_with("." + name);
}

bool IsLoopbackHost(const std::string& host) {
  const auto address = AddressOf(host);
  return host == "localhost" || (address && *address >> 24 == 127);
}

bool IsExcluded(const std::string& list, const std::string& host, const std::string& port) {
  std::istringstream entries(LowerCase(list));
  for (std::string entry; std::getline(entries, entry, ',');) {
    std::erase_if(entry, [](unsigned char c) { return std::isspace(c) != 0; });
    if (Means(entry, host, port)) return true;
  }
  return false;
}

}  // namespace

Result<std::string> ProxyOfEnvironment(const std::string& base_url,
                                       const Environment& environment) {
  const bool https = base_url.starts_with(kHttps);
  const std::string variable = https ? "HTTPS_PROXY" : "HTTP_PROXY";
  std::string proxy = Value(environment, variable);
  if (proxy.empty()) return proxy;
  const size_t scheme = base_url.find("://");
  auto [host, port] = SplitPort(LowerCase(base_url.substr(scheme + 3)));
  if (port.empty()) port = https ? "443" : "80";
  if (IsLoopbackHost(host) || IsExcluded(Value(environment, "NO_PROXY"), host, port)) return "";
  if (proxy.find("://") == std::string::npos) proxy = kHttp + proxy;
  while (proxy.ends_with('/'))
    proxy.pop_back();
  if (!proxy.starts_with(kHttp) || proxy.find('@') != std::string::npos) {
    return UnimplementedError("environment variable " + variable +
                              ": only http://HOST:PORT is supported, without a password");
  }
  return proxy;
}

}  // namespace flamefleet
