// SPDX-License-Identifier: Apache-2.0
// The part of `deep` that is in its shared library.
#pragma once

#include <cstdint>

// Calls `next(rounds)` from another file, so that every second frame is in the library.
extern "C" void DeepHop(void (*next)(int64_t), int64_t rounds);
