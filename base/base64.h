// SPDX-License-Identifier: Apache-2.0
// Base64 of RFC 4648, with padding.
//
// Thread: any. Errors: kInvalidArgument, without the text: it may be a secret.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace flamefleet {

std::string EncodeBase64(std::string_view bytes);

// White space is skipped.
Result<std::string> DecodeBase64(std::string text);

}  // namespace flamefleet
