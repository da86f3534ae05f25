// SPDX-License-Identifier: Apache-2.0
// The web UI, built by vite and linked into the program (embed.mjs), as HTTP answers.
//
// Thread: any.
#pragma once

#include <optional>

#include "base/http/server.h"

namespace flamefleet::store::ui {

// The file at the path of a GET; "/" is the UI, "/speedscope/" that application. None when there is
// no such file. Names with a hash of their content may be kept by browsers for ever, the others are
// asked for again with their ETag.
std::optional<HttpServerResponse> FindAsset(const HttpServerRequest& request);

}  // namespace flamefleet::store::ui
