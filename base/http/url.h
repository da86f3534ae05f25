// SPDX-License-Identifier: Apache-2.0
// The parts of URLs that client and server share: percent-encoding and host:port.
//
// Thread: any. Errors: kInvalidArgument, the message names the text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace flamefleet {

// Percent-encodes a query value or path segment (unreserved characters of RFC 3986 stay).
std::string UrlEncode(std::string_view text);

// The reverse: %XX becomes a byte; a lone or broken % is an error.
Result<std::string> UrlDecode(std::string_view text);

// "a=1&b=x+y" as decoded pairs; '+' is a space, a key without '=' has an empty value.
Result<std::multimap<std::string, std::string>> ParseQuery(std::string_view query);

// "http://host:4040/path/" as base URL and path: {"http://host:4040", "/path"}.
std::pair<std::string, std::string> SplitBaseUrl(const std::string& url);

struct HostPort {
  std::string host;  // without brackets; may be empty
  uint16_t port = 0;
};

// "host:port", "[v6]:port" or ":port".
Result<HostPort> ParseHostPort(const std::string& text);

// The reverse; brackets around an IPv6 address.
std::string JoinHostPort(const std::string& host, uint32_t port);

}  // namespace flamefleet
