// SPDX-License-Identifier: Apache-2.0
// The part of `shares` that may be in its shared library.
#pragma once

// Calls it.
extern "C" void Hop(void (*next)());
