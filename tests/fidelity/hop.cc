// SPDX-License-Identifier: Apache-2.0
#include "tests/fidelity/shares.h"

namespace {
volatile int sink;
}  // namespace

extern "C" __attribute__((noipa)) void Hop(void (*next)()) {
  next();
  sink = sink + 1;  // no tail call: this frame must be on the stack
}
