// SPDX-License-Identifier: Apache-2.0
#include "base/hex.h"

#include <absl/strings/escaping.h>

namespace flamefleet {

std::string ToHex(std::string_view bytes) {
  return absl::BytesToHexString({bytes.data(), bytes.size()});
}

}  // namespace flamefleet
