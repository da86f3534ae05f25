// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// The sampling program for an event of somebody else, who gets its samples as well. Behind each
// record of ours comes one that tells when it was taken, by the monotonic clock.
// The program brings the types that the header needs.
// clang-format off
#include "bpf/profiler.bpf.c"
#include "tests/fidelity/passing.h"
// clang-format on

SEC("perf_event")
int take_and_pass(struct bpf_perf_event_data* ctx) {
  const u64 thread = bpf_get_current_pid_tgid();
  struct passed_record record = {
      .kind = PASSED_RECORD, .tid = (u32)thread, .nanos = bpf_ktime_get_ns()};
  record_sample(ctx, thread);
  bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_NO_WAKEUP);
  return 1;
}
