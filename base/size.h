// SPDX-License-Identifier: Apache-2.0
// Sizes as people write them: "10Gi", "500Mi", "64Ki", "1000000".
//
// Thread: any. Units: bytes. Bounds: up to 1 PiB.
// Errors: kInvalidArgument; the message has the text and what is allowed.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace flamefleet {

// A whole number, `min` bytes at least, with Ki, Mi, Gi, Ti or nothing behind it.
Result<int64_t> ParseSize(const std::string& text, int64_t min = 1);

}  // namespace flamefleet
