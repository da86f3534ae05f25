// SPDX-License-Identifier: Apache-2.0
// How much of what it may have the agent gives to each part of the CPU pipeline.
#pragma once

#include <cstddef>

namespace flamefleet::agent {

// Files of programs that are kept open: half of what this process may open; the rest is for
// connections.
size_t OpenFileLimit();

// Bytes of unwind tables, which are kernel memory but count in the agent's limit.
size_t UnwindTableBytes();

// Bytes of tables and names of functions.
size_t SymbolCacheBytes();

}  // namespace flamefleet::agent
