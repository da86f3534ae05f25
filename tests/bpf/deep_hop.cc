// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/deep.h"

namespace {
volatile int64_t sink;
}  // namespace

extern "C" __attribute__((noinline)) void DeepHop(void (*next)(int64_t), int64_t rounds) {
  next(rounds);
  sink = sink + 1;  // no tail call: this frame must be on the stack
}
