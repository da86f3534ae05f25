// SPDX-License-Identifier: Apache-2.0
// `flamefleet-store check DIR`: is what a store has on disk whole? Prints a line per day and one
// per problem; also while the store runs.
//
// Thread: main.
#pragma once

#include <string>

namespace flamefleet::store {

// The exit code: 0 all whole, 1 something is not, or cannot be read.
int CheckDirectory(const std::string& directory);

}  // namespace flamefleet::store
