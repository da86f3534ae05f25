// SPDX-License-Identifier: Apache-2.0
// Bounded gzip decompression, for bytes that came from a network; and compression of what is built
// rarely (the agent's profiles go through agent/compress).
//
// Thread: any. Errors: kInvalidArgument for a damaged, truncated or trailing-garbage stream,
// kResourceExhausted when the output would pass max_bytes (a bomb costs at most that much memory).
// Several gzip members in a row are one stream.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace flamefleet {

// True when `data` starts with the gzip magic 1f 8b.
bool IsGzip(std::string_view data);

Result<std::string> GunzipBounded(std::string_view data, size_t max_bytes);

// One gzip member, zlib's default level. kResourceExhausted: no memory, or over 4 GiB.
Result<std::string> Gzip(std::string_view data);

}  // namespace flamefleet
