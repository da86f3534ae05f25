// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// The sampling program: runs on every tick of a per-CPU cpu-clock perf event and writes one record
// per wanted sample. Beside it, two that tell when a wanted process ends.
//
// The agent drains the ring on a timer; it is woken for what is new, which may be gone by then: the
// first sample of a process or cgroup. Everything that is skipped or lost is counted
// (enum ff_counter). Everything that is written to user space is in profiler.h.
// clang-format off: vmlinux_min.h must come first
#include "bpf/vmlinux/vmlinux_min.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "bpf/profiler.h"
#include "bpf/unwind.bpf.h"
// clang-format on

// The kernel lends most helpers used here only to programs under the GPL.
char LICENSE[] SEC("license") = "GPL";

const volatile struct ff_config config = {};

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 20);  // bytes; the agent sets it before loading
} ring SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, FF_MAX_CGROUPS);
  __type(key, u64);
  __type(value, u32);
} cgroups SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, FF_MAX_PIDS);
  __type(key, u32);
  __type(value, u8);
} pids SEC(".maps");

// Processes for which the agent was woken.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, FF_MAX_MET_PROCESSES);
  __type(key, struct ff_process_key);
  __type(value, u8);
} met_processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, FF_COUNTERS);
  __type(key, u32);
  __type(value, u64);
} counters SEC(".maps");

static __always_inline void add(u32 which, u64 number) {
  u64* counter = bpf_map_lookup_elem(&counters, &which);
  if (counter) *counter += number;
}

static __always_inline void count(u32 which) {
  add(which, 1);
}

#define MAX_PID_LEVEL 32  // MAX_PID_NS_LEVEL of the kernel

// The number of a thread in the agent's PID namespace, which is not the initial one; 0: it has none
// there.
static __always_inline u32 number_of(struct task_struct* thread) {
  struct pid* pid = BPF_CORE_READ(thread, thread_pid);
  const u32 level = BPF_CORE_READ(pid, level);
  const void* first = (const void*)pid + bpf_core_field_offset(struct pid, numbers);
  for (u32 i = 0; i <= MAX_PID_LEVEL && i <= level; i++) {
    const struct upid* number = first + i * bpf_core_type_size(struct upid);
    if (BPF_CORE_READ(number, ns, ns.inum) == config.pid_namespace)
      return BPF_CORE_READ(number, nr);
  }
  return 0;
}

static __always_inline struct kernfs_node* parent_of(struct kernfs_node* node) {
  if (bpf_core_field_exists(node->parent)) return BPF_CORE_READ(node, parent);
  return BPF_CORE_READ((struct kernfs_node___rcu*)node, __parent);
}

// The directory of the task's cgroup in the v1 hierarchy of a controller; NULL when it is the root
// there, or the controller is not on v1 (else `is_v1` is set).
static __always_inline struct kernfs_node* v1_directory(struct css_set* set, u32 controller,
                                                        bool* is_v1) {
  struct cgroup_subsys_state* css = NULL;
  const void* slot =
      (const void*)set + bpf_core_field_offset(struct css_set, subsys) + controller * sizeof(void*);
  if (bpf_probe_read_kernel(&css, sizeof(css), slot) || !css) return NULL;
  struct cgroup* group = BPF_CORE_READ(css, cgroup);
  if (BPF_CORE_READ(group, root) == BPF_CORE_READ(set, dfl_cgrp, root)) return NULL;
  *is_v1 = true;
  struct kernfs_node* node = BPF_CORE_READ(group, kn);
  return parent_of(node) ? node : NULL;
}

// Each hierarchy numbers its directories by itself: these bits, which are in no such number, tell
// them apart where there are several.
#define CGROUP_OF_MEMORY (1ull << 63)
#define CGROUP_BESIDE_V1 (1ull << 62)

// Container runtimes put a container into every v1 hierarchy there is, and into v2 otherwise: so v1
// first, where the v2 hierarchy of a hybrid host knows only systemd's units.
static __always_inline struct kernfs_node* cgroup_directory(struct task_struct* task, u64* id) {
  struct css_set* set = BPF_CORE_READ(task, cgroups);
  struct kernfs_node* node = NULL;
  u64 hierarchy = 0;
  bool is_v1 = false;
  if (bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id))
    node = v1_directory(set, bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id), &is_v1);
  if (!node && bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id)) {
    node = v1_directory(set, bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id), &is_v1);
    hierarchy = CGROUP_OF_MEMORY;
  }
  if (!node) {
    node = BPF_CORE_READ(set, dfl_cgrp, kn);
    hierarchy = is_v1 ? CGROUP_BESIDE_V1 : 0;
  }
  *id = BPF_CORE_READ(node, id) | hierarchy;
  return node;
}

// Tells the agent about a cgroup id, once: the map remembers that it was told.
static __always_inline void report_cgroup(u64 id, struct kernfs_node* node) {
  const u32 reported = FF_CGROUP_REPORTED;
  if (bpf_map_update_elem(&cgroups, &id, &reported, BPF_NOEXIST)) return;  // another CPU does
  struct ff_cgroup_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
  if (!record) {
    bpf_map_delete_elem(&cgroups, &id);
    count(FF_COUNT_CGROUP_RING_FULL);
    return;
  }
  record->kind = FF_RECORD_CGROUP;
  record->reserved = 0;
  record->cgroup_id = id;
  for (int i = 0; i < FF_CGROUP_NAMES; i++) {
    record->names[i][0] = 0;
    if (node) {
      bpf_probe_read_kernel_str(record->names[i], FF_CGROUP_NAME_BYTES, BPF_CORE_READ(node, name));
      node = parent_of(node);
    }
  }
  bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

// What take_sample decided about the process before, if it did.
static __always_inline bool was_wanted(struct task_struct* task, u32 pid) {
  if (config.scope == FF_SCOPE_HOST) return true;
  if (config.scope == FF_SCOPE_PIDS) return bpf_map_lookup_elem(&pids, &pid) != NULL;
  u64 cgroup_id = 0;
  cgroup_directory(task, &cgroup_id);
  const u32* verdict = bpf_map_lookup_elem(&cgroups, &cgroup_id);
  return verdict && *verdict == FF_CGROUP_WANTED;
}

static __always_inline bool is_wanted(struct task_struct* task, u32 pid, u64* cgroup_id) {
  if (config.scope == FF_SCOPE_HOST) return true;
  if (config.scope == FF_SCOPE_PIDS) return bpf_map_lookup_elem(&pids, &pid) != NULL;
  struct kernfs_node* node = cgroup_directory(task, cgroup_id);
  const u32* verdict = bpf_map_lookup_elem(&cgroups, cgroup_id);
  if (!verdict) report_cgroup(*cgroup_id, node);
  if (!verdict || *verdict == FF_CGROUP_REPORTED) {
    count(FF_COUNT_CGROUP_PENDING);
    return false;
  }
  return *verdict == FF_CGROUP_WANTED;
}

// Whether the process of the walk was never sampled before.
static __always_inline bool is_newcomer(struct scratch* s) {
  if (s->is_prepared) return false;
  const u8 met = 1;
  return bpf_map_update_elem(&met_processes, &s->process, &met, BPF_NOEXIST) == 0;
}

static __always_inline int record_sample(struct bpf_perf_event_data* ctx, u64 pid_tid) {
  count(FF_COUNT_EVENTS);
  struct task_struct* task = (struct task_struct*)bpf_get_current_task();
  const u32 pid =
      config.pid_namespace ? number_of(BPF_CORE_READ(task, group_leader)) : pid_tid >> 32;
  if (pid == 0) {
    count(FF_COUNT_OTHER_NAMESPACE);
    return 0;
  }
  u64 cgroup_id = 0;
  if (!is_wanted(task, pid, &cgroup_id)) return 0;

  struct scratch* s = this_scratch();
  if (!s) return 0;
  struct ff_sample* sample = &s->sample;
  struct task_struct* leader = BPF_CORE_READ(task, group_leader);
  sample->kind = FF_RECORD_SAMPLE;
  sample->pid = pid;
  sample->tid = config.pid_namespace ? number_of(task) : (u32)pid_tid;
  sample->flags = BPF_CORE_READ(task, flags) & PF_KTHREAD ? FF_SAMPLE_KERNEL_THREAD : 0;
  sample->reserved = 0;
  sample->user_frames = 0;
  sample->start_boottime = BPF_CORE_READ(leader, start_boottime);
  sample->exec_id = BPF_CORE_READ(leader, self_exec_id);
  sample->cgroup_id = cgroup_id;
  BPF_CORE_READ_STR_INTO(&sample->comm, leader, comm);
  bpf_get_current_comm(sample->thread_comm, sizeof(sample->thread_comm));

  const long kernel_bytes =
      is_user_mode(ctx) ? 0
                        : bpf_get_stack(ctx, sample->frames, FF_MAX_KERNEL_FRAMES * sizeof(u64), 0);
  sample->kernel_frames = kernel_bytes > 0 ? kernel_bytes / sizeof(u64) : 0;

  sample->stop = FF_STOP_NONE;
  struct mm_struct* mm = BPF_CORE_READ(task, mm);
  sample->code_pages = 0;
  u64 wake = BPF_RB_NO_WAKEUP;
  if (!sample->flags && mm) {
    sample->code_pages = BPF_CORE_READ(mm, exec_vm);
    if (read_user_registers(ctx, s)) {
      walk_user_stack(s);
      if (is_newcomer(s)) wake = BPF_RB_FORCE_WAKEUP;
    } else {
      sample->stop = FF_STOP_NO_REGISTERS;
    }
  }

  const u64 frames = (u64)sample->kernel_frames + sample->user_frames;
  const u64 bytes = FF_SAMPLE_HEADER_BYTES + (frames & (FF_FRAMES - 1)) * sizeof(u64);
  if (bpf_ringbuf_output(&ring, sample, bytes, wake)) {
    count(FF_COUNT_RING_FULL);
    return 0;
  }
  count(FF_COUNT_SENT);
  if (sample->stop < FF_STOPS) count(FF_COUNT_STOP + sample->stop);
  return 0;
}

SEC("perf_event")
int take_sample(struct bpf_perf_event_data* ctx) {
  const u64 pid_tid = bpf_get_current_pid_tgid();
  if (pid_tid >> 32 == 0) return 0;  // idle
  const u64 begun = bpf_ktime_get_ns();
  record_sample(ctx, pid_tid);
  add(FF_COUNT_RUN_NANOS, bpf_ktime_get_ns() - begun);
  return 0;
}

// `exec_id` of the address space that has ended; `exec_ns` as in ff_ended_record.
static __always_inline void report_ended(struct task_struct* task, u64 exec_id, u64 exec_ns) {
  struct task_struct* leader = BPF_CORE_READ(task, group_leader);
  const u32 pid = config.pid_namespace ? number_of(leader) : BPF_CORE_READ(task, tgid);
  if (pid == 0 || !was_wanted(task, pid)) return;
  struct ff_ended_record* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
  if (!record) {
    count(FF_COUNT_ENDED_RING_FULL);
    return;
  }
  record->kind = FF_RECORD_ENDED;
  record->reserved = 0;
  record->process.start_boottime = BPF_CORE_READ(leader, start_boottime);
  record->process.exec_id = exec_id;
  record->process.pid = pid;
  record->process.reserved = 0;
  record->exec_ns = exec_ns;
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

// Raw ones: no tracefs is needed, and no format of it can change.
SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args* ctx) {
  struct task_struct* task = (struct task_struct*)ctx->args[0];
  if (BPF_CORE_READ(task, flags) & PF_KTHREAD) return 0;
  if (BPF_CORE_READ(task, signal, live.counter) > 0) return 0;  // other threads go on
  report_ended(task, BPF_CORE_READ(task, group_leader, self_exec_id), 0);
  return 0;
}

SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args* ctx) {
  struct task_struct* task = (struct task_struct*)ctx->args[0];
  report_ended(task, BPF_CORE_READ(task, self_exec_id) - 1, bpf_ktime_get_ns());
  return 0;
}
