// SPDX-License-Identifier: Apache-2.0
// The library that `shares late` loads when it has run for a while.

namespace {
volatile int sink;
}  // namespace

extern "C" __attribute__((noipa)) void LateCall(void (*next)()) {
  next();
  sink = sink + 1;  // no tail call: this frame must be on the stack
}
