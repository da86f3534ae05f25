// SPDX-License-Identifier: Apache-2.0
// What a command prints may get lost: on a full disk, say. Whoever prints does not hear of it.
//
// Thread: main, at its end. Errors: those of writing.
#pragma once

#include "base/status.h"

namespace flamefleet {

// Whether all that this program has printed is where its standard output goes.
Status FlushStandardOutput();

}  // namespace flamefleet
