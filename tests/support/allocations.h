// SPDX-License-Identifier: Apache-2.0
// Allocations: how often this program has called operator new. A test that asks is a program of its
// own, for allocations.cc replaces the operator.
//
// Thread: any.
#pragma once

#include <cstddef>

namespace flamefleet {

size_t Allocations();

}  // namespace flamefleet
