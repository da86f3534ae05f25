// SPDX-License-Identifier: Apache-2.0
// Writes all of a buffer, in as many calls as that takes.
//
// Errors: what write(2) says, with `name`; some of it may be written then.
#pragma once

#include <span>
#include <string>

#include "base/status.h"

namespace flamefleet {

Status WriteAll(int fd, std::span<const char> bytes, const std::string& name);

}  // namespace flamefleet
