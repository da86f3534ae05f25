// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// The kernel types that profiler.bpf.c reads, and of those only the fields it reads.
//
// Offsets are not taken from here: preserve_access_index makes libbpf look each field up in the BTF
// of the running kernel, so one build serves every kernel and needs none at build time. A `___x`
// suffix is dropped in that look-up: it names another shape of the same type.
#pragma once

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/types.h>
#include <stdbool.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
  const char* name;
  struct kernfs_node* parent;  // until 6.14
  u64 id;
};

struct kernfs_node___rcu {
  struct kernfs_node* __parent;  // since 6.15
};

struct cgroup_root;

struct cgroup {
  struct kernfs_node* kn;
  struct cgroup_root* root;
};

struct cgroup_subsys_state {
  struct cgroup* cgroup;
};

struct css_set {
  struct cgroup_subsys_state* subsys[1];  // as many as enum cgroup_subsys_id has
  struct cgroup* dfl_cgrp;
};

struct bpf_map {
  u32 max_entries;
};

struct pid_namespace {
  struct {
    unsigned int inum;
  } ns;  // struct ns_common
};

struct upid {
  int nr;
  struct pid_namespace* ns;
};

struct pid {
  unsigned int level;      // of the namespace that it was made in; 0: the initial one
  struct upid numbers[1];  // one for each level
};

struct mm_struct {
  unsigned long exec_vm;  // pages
};

struct signal_struct {
  struct {
    int counter;
  } live;  // atomic_t: threads that have not exited
};

struct task_struct {
  unsigned int flags;
  struct mm_struct* mm;
  int pid;
  int tgid;
  struct task_struct* group_leader;
  struct pid* thread_pid;
  u64 start_boottime;
  u64 self_exec_id;
  char comm[16];
  struct css_set* cgroups;
  struct signal_struct* signal;
};

#pragma clang attribute pop

// Values differ between kernels: only for bpf_core_enum_value.
enum cgroup_subsys_id {
  memory_cgrp_id = 0x7001,
  pids_cgrp_id = 0x7002,
};

#define PF_KTHREAD 0x00200000  // include/linux/sched.h
