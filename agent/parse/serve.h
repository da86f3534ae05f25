// SPDX-License-Identifier: Apache-2.0
// The parsing child's side: answers one request after the other until its parent hangs up.
//
// Thread: the only one. Bounds: request.h; over the CPU time of a request the process is killed by
// its own timer. Errors: a handler's error, and memory that ends, is an answer.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "agent/parse/request.h"
#include "base/status.h"

namespace flamefleet::agent {

// From the files and the arguments of a request to its answer. The descriptors are the caller's.
using ParseHandler =
    std::function<Result<std::string>(std::span<const int> files, std::string_view arguments)>;
using ParseHandlers = std::map<ParseKind, ParseHandler>;

// Enters the sandbox, says so to the parent, serves. The exit code of the process.
int ServeParser(int socket, const ParseHandlers& handlers);

}  // namespace flamefleet::agent
