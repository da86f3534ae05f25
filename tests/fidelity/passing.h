// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// What tests/fidelity/passing.bpf.c puts into the ring beside the records of bpf/profiler.h.
#pragma once

#include "bpf/profiler.h"

enum { PASSED_RECORD = 100 };  // none of enum ff_record_kind

struct passed_record {
  ff_u32 kind;  // PASSED_RECORD
  ff_u32 tid;
  ff_u64 nanos;
};
