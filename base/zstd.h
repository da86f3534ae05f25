// SPDX-License-Identifier: Apache-2.0
// Zstandard frames with a checksum: what the store keeps at rest.
//
// Thread: any. Errors: kDataLoss for a damaged or truncated frame, or one that would unpack to more
// than max_bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace flamefleet {

std::string ZstdCompress(std::string_view data, int level);
Result<std::string> ZstdDecompress(std::string_view frame, size_t max_bytes);

}  // namespace flamefleet
