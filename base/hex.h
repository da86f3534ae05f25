// SPDX-License-Identifier: Apache-2.0
// Hexadecimal digits, lower case: build IDs, digests, random names. Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace flamefleet {

// Two digits for each byte.
std::string ToHex(std::string_view bytes);

}  // namespace flamefleet
