// SPDX-License-Identifier: Apache-2.0
// The proxy that the environment names for an API server, as kubectl and other programs of Go read
// it: $HTTPS_PROXY ($HTTP_PROXY of a server without TLS), but for loopback and for what $NO_PROXY
// lists: names with all below them, ".name" and "*.name" for those below alone, IPv4 addresses and
// ranges, each with an optional port; "*" is everything. In lower case, too, where the other is
// not set.
//
// Thread: any. Errors: kUnimplemented a proxy that is not http://HOST:PORT; the message does not
// have its address, which may hold a password. Source: golang.org/x/net/http/httpproxy.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/status.h"

namespace flamefleet {

// Empty: none.
Result<std::string> ProxyOfEnvironment(
    const std::string& base_url,
    const std::function<std::optional<std::string>(const std::string& name)>& environment);

}  // namespace flamefleet
