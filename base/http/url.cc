// SPDX-License-Identifier: Apache-2.0
#include "base/http/url.h"

#include <charconv>

namespace flamefleet {
namespace {

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string UrlEncode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (IsUnreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return out;
}

Result<std::string> UrlDecode(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (error != std::errc() || digits.size() != 2 || end != digits.data() + 2) {
      return InvalidArgumentError("percent-encoding '" + std::string(text.substr(0, 100)) +
                                  "': want two hexadecimal digits after each '%'");
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

Result<std::multimap<std::string, std::string>> ParseQuery(std::string_view query) {
  std::multimap<std::string, std::string> pairs;
  while (!query.empty()) {
    const size_t end = query.find('&');
    std::string pair(query.substr(0, end));
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    if (pair.empty()) continue;
    for (char& c : pair) {
      if (c == '+') c = ' ';
    }
    const size_t equals = pair.find('=');
    FF_ASSIGN_OR_RETURN(std::string key, UrlDecode(std::string_view(pair).substr(0, equals)));
    std::string value;
    if (equals != std::string::npos) {
      FF_ASSIGN_OR_RETURN(value, UrlDecode(std::string_view(pair).substr(equals + 1)));
    }
    pairs.emplace(std::move(key), std::move(value));
  }
  return pairs;
}

std::pair<std::string, std::string> SplitBaseUrl(const std::string& url) {
  const size_t scheme_end = url.find("://");
  const size_t path = url.find('/', scheme_end == std::string::npos ? 0 : scheme_end + 3);
  if (path == std::string::npos) return {url, ""};
  std::string prefix = url.substr(path);
  while (prefix.ends_with('/'))
    prefix.pop_back();
  return {url.substr(0, path), prefix};
}

Result<HostPort> ParseHostPort(const std::string& text) {
  const Status wrong =
      InvalidArgumentError("address '" + text + "': want HOST:PORT, [IPV6]:PORT or :PORT");
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong;
  HostPort result;
  result.host = text.substr(0, colon);
  if (result.host.size() >= 2 && result.host.front() == '[' && result.host.back() == ']') {
    result.host = result.host.substr(1, result.host.size() - 2);
  } else if (result.host.find_first_of("[]:") != std::string::npos) {
    return wrong;
  }
  const char* const first = text.data() + colon + 1;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(first, last, result.port);
  if (error != std::errc() || end != last) return wrong;
  return result;
}

std::string JoinHostPort(const std::string& host, uint32_t port) {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace flamefleet
