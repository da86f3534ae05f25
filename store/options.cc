// SPDX-License-Identifier: Apache-2.0
#include "store/options.h"

namespace flamefleet::store {

bool IsLoopback(const std::string& listen) {
  return listen.starts_with("127.") || listen.starts_with("[::1]:") ||
         listen.starts_with("localhost:");
}

}  // namespace flamefleet::store
