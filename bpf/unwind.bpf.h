// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// The walk up the user stack of the sampled task. For each frame: by the table of its file if there
// is a rule for its instruction pointer, else by frame pointer, else the walk stops with a reason.
//
// Included by profiler.bpf.c only. The steps are global functions (not static) without arguments:
// the verifier checks each once, not once per iteration, so depth costs no verifier time. What they
// share is in the scratch of the CPU.
#pragma once

struct {
  __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
  __uint(max_entries, FF_MAX_UNWIND_PROCESSES);
  __type(key, struct ff_process_key);
  __array(
      values, struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_INNER_MAP);  // each process has as many as it needs
        __uint(max_entries, 1);
        __type(key, u32);
        __type(value, struct ff_mapping);
      });
} unwind_processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
  __uint(max_entries, FF_MAX_UNWIND_TABLES);
  __type(key, u32);
  __array(
      values, struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_INNER_MAP);
        __uint(max_entries, 1);
        __type(key, u32);
        __type(value, u64);
      });
} unwind_tables SEC(".maps");

// How many user frames a sample has at most; the agent sets it at any time.
volatile ff_u32 max_user_frames = FF_MAX_USER_FRAMES;

// For struct ff_mapping's table, here only: there is no mapping. Tables are numbered from 1.
#define TABLE_UNMAPPED 0xffffffff

// A rule that was found before. Stacks of one program are mostly the same callers, and a table
// costs a cache miss for each step of the search. It cannot be wrong: tables never change, their
// numbers are never used again.
struct cached_rule {
  u32 table;    // 0: there is none here
  u32 address;  // as the file gives it
  struct ff_unwind_rule rule;
};
#define CACHED_RULE_BITS 10  // 16 KiB per CPU

#define STACK_WORDS 32  // 256 bytes; a power of two

// The sample being built and the state of the walk. Too big for the BPF stack; a CPU builds one
// sample at a time.
struct scratch {
  u64 ip;
  u64 sp;
  u64 bp;
  u64 code;                       // an address inside the instruction that the frame is at
  struct ff_process_key process;  // whose stack it is
  struct ff_mapping mapping;      // the last one that was found; end is 0 before the first
  struct ff_mapping other;        // the one before: calls go to and fro between two files
  struct ff_unwind_rule rule;     // what find_rule found
  bool is_prepared;               // the process has mappings
  bool is_caller;   // ip is behind its instruction: a return address, or of a system call
  bool is_sp_lost;  // arm64: after a step by frame pointer, which does not tell it
  bool was_rule;    // the frame was found by a rule: sp is right
  u64 lr;           // arm64: the return address while it is in the register, else 0
  // A piece of the stack from stack_start on; 0: there is none. Most frames are small, so that one
  // read serves several.
  u64 stack_start;
  u64 stack[STACK_WORDS];
  struct ff_sample sample;
  struct cached_rule rules[1 << CACHED_RULE_BITS];
};

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, u32);
  __type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct scratch* this_scratch(void) {
  u32 zero = 0;
  return bpf_map_lookup_elem(&scratches, &zero);
}

static __always_inline bool holds(const struct ff_mapping* mapping, u64 address) {
  return address >= mapping->start && address < mapping->end;
}

// Puts the mapping of s->code into s->mapping; where there is none, what lies between two, with the
// table TABLE_UNMAPPED: code made at run time has many frames there. 0 or why not.
__attribute__((noinline)) int find_mapping(void) {
  struct scratch* s = this_scratch();
  if (!s) return FF_STOP_FAULT;
  void* mappings = bpf_map_lookup_elem(&unwind_processes, &s->process);
  if (!mappings) return FF_STOP_NOT_READY;
  s->is_prepared = true;
  // The first mapping that starts behind the address.
  u32 low = 0;
  u32 high = ((struct bpf_map*)mappings)->max_entries;
  for (int i = 0; i <= 10 && low < high; i++) {  // 2^10 mappings
    u32 middle = (low + high) / 2;
    const struct ff_mapping* mapping = bpf_map_lookup_elem(mappings, &middle);
    if (mapping && mapping->start <= s->code)
      low = middle + 1;
    else
      high = middle;
  }
  u32 last = low - 1;
  const struct ff_mapping* found = bpf_map_lookup_elem(mappings, &last);
  if (found && s->code < found->end) {
    s->mapping = *found;
    return 0;
  }
  const struct ff_mapping* next = bpf_map_lookup_elem(mappings, &low);
  s->mapping.start = found ? found->end : 0;
  s->mapping.end = next ? next->start : ~0ull;
  s->mapping.table = TABLE_UNMAPPED;
  return 0;
}

static __always_inline u64 word_at(void* table, u32 index) {
  const u64* word = bpf_map_lookup_elem(table, &index);
  return word ? *word : 0;
}

// Puts the rule for s->code into s->rule, by a search in the table. 0 or why not.
__attribute__((noinline)) int search_rule(void) {
  struct scratch* s = this_scratch();
  if (!s) return FF_STOP_FAULT;
  void* table = bpf_map_lookup_elem(&unwind_tables, &s->mapping.table);
  if (!table) return FF_STOP_NO_TABLE;
  const u64 address = s->code - s->mapping.bias;
  const u64 page = (address >> FF_UNWIND_PAGE_BITS) - word_at(table, 0);
  const u64 counts = word_at(table, 1);
  const u32 pages = counts;
  if (page >= pages) return FF_STOP_NO_RULE;
  const u32 rules = FF_UNWIND_HEADER_WORDS + pages;
  const u32 rows = rules + (counts >> 32);
  const u64 index = word_at(table, FF_UNWIND_HEADER_WORDS + page);
  const u32 wanted = address & ((1 << FF_UNWIND_PAGE_BITS) - 1);
  u32 first = index;
  u32 count = index >> 32;
  u32 row = 0;
  // The last row that is not behind the address. The page's first row is for its first address.
  for (int i = 0; i <= FF_UNWIND_PAGE_BITS; i++) {
    const u32 half = count / 2;
    const u32 middle = first + half;
    const u32 candidate = word_at(table, rows + middle / 2) >> (middle % 2 * 32);
    if ((candidate & 0xffff) <= wanted) {
      row = candidate;
      first = middle;
      count -= half;
    } else {
      count = half;
    }
    if (half == 0) break;
  }
  const u64 rule = word_at(table, rules + (row >> 16));
  __builtin_memcpy(&s->rule, &rule, sizeof(rule));
  return s->rule.cfa == FF_CFA_UNKNOWN ? FF_STOP_NO_RULE : 0;
}

// The same, from what was found before if it is still there.
static __always_inline int find_rule(struct scratch* s) {
  const u32 table = s->mapping.table;
  const u64 address = s->code - s->mapping.bias;
  if (table == 0) return FF_STOP_NO_TABLE;
  if (table == TABLE_UNMAPPED) return FF_STOP_NO_MAPPING;
  if (address >> 32) return search_rule();
  const u64 key = address | (u64)table << 32;
  const u32 slot = key * 0x9e3779b97f4a7c15 >> (64 - CACHED_RULE_BITS);
  struct cached_rule* cached = &s->rules[slot & ((1 << CACHED_RULE_BITS) - 1)];
  if (cached->table == table && cached->address == (u32)address) {
    s->rule = cached->rule;
    return 0;
  }
  const int reason = search_rule();
  if (reason) return reason;
  cached->table = table;
  cached->address = address;
  cached->rule = s->rule;
  return 0;
}

// The farthest that one frame may be from the next: what is beyond is not a frame pointer.
#define MAX_FRAME_BYTES (1 << 20)

// A word of the stack; not 0 when it is not in memory.
static __always_inline long read_stack(struct scratch* s, u64 address, u64* word) {
  const u64 at = address - s->stack_start;
  if (at < sizeof(s->stack) && (at & 7) == 0) {
    u64 index = at / 8;
    barrier_var(index);  // else clang drops the bound that the verifier wants to see
    *word = s->stack[index & (STACK_WORDS - 1)];
    return 0;
  }
  s->stack_start = address;
  if (bpf_probe_read_user(s->stack, sizeof(s->stack), (const void*)address)) {
    s->stack_start = 0;  // its end is not there
    return bpf_probe_read_user(word, sizeof(*word), (const void*)address);
  }
  *word = s->stack[0];
  return 0;
}

// Moves to the caller by frame pointer. 0, or why the walk ends; `reason` if bp is no frame
// pointer.
static __always_inline int step_by_frame_pointer(struct scratch* s, int reason);

#if defined(__TARGET_ARCH_x86)
#include "bpf/step_x86.bpf.h"
#elif defined(__TARGET_ARCH_arm64)
#include "bpf/step_arm64.bpf.h"
#else
#error "the walk knows the registers of x86-64 and arm64 only"
#endif

static __always_inline int step_by_frame_pointer(struct scratch* s, int reason) {
  const u64 bp = s->bp;
  // Before the tables are there, nothing tells the outermost frame from a register that is 0.
  const int end = reason == FF_STOP_NOT_READY ? reason : FF_STOP_COMPLETE;
  if (bp == 0) return end;
  if ((bp & 7) || bp < s->sp || bp - s->sp > MAX_FRAME_BYTES) return reason;
  u64 caller_bp;
  u64 return_address;
  if (read_stack(s, bp, &caller_bp) || read_stack(s, bp + 8, &return_address)) return FF_STOP_FAULT;
  return_address &= ADDRESS_MASK;
  if (return_address == 0) return end;
  s->ip = return_address;
  s->sp = bp + 16;  // arm64: at least
  s->is_sp_lost = !FRAME_POINTER_TELLS_SP;
  s->bp = caller_bp;
  s->lr = 0;
  s->is_caller = true;
  return 0;
}

// Records the frame and moves to its caller. 0: go on; else the enum ff_stop reason.
__attribute__((noinline)) int step(void) {
  struct scratch* s = this_scratch();
  if (!s) return FF_STOP_FAULT;
  struct ff_sample* sample = &s->sample;
  const bool is_like_a_caller = s->is_caller || sample->user_frames == 0;
  sample->frames[(sample->kernel_frames + sample->user_frames) & (FF_FRAMES - 1)] =
      is_like_a_caller ? s->ip : s->ip + 1;
  sample->user_frames++;

  s->code = s->is_caller ? s->ip - 1 : s->ip;
  int reason = 0;
  if (!holds(&s->mapping, s->code)) {
    const struct ff_mapping last = s->mapping;
    s->mapping = s->other;
    s->other = last;
    if (!holds(&s->mapping, s->code)) reason = find_mapping();
  }
  if (!reason) reason = find_rule(s);
  const bool was_rule = s->was_rule;
  s->was_rule = !reason;
  if (!reason) return step_by_rule(s);
  if (was_rule && step_over_trampoline(s)) return 0;
  return step_by_frame_pointer(s, reason);
}

// From the registers in `s` outwards; fills the user part of the sample.
static __always_inline void walk_user_stack(struct scratch* s) {
  s->process.start_boottime = s->sample.start_boottime;
  s->process.exec_id = s->sample.exec_id;
  s->process.pid = s->sample.pid;
  s->mapping.end = 0;
  s->other.end = 0;
  s->stack_start = 0;
  s->is_prepared = false;
  s->was_rule = false;
  u32 stop = FF_STOP_DEPTH;
  const u32 depth = max_user_frames;
  for (u32 i = 0; i < FF_MAX_USER_FRAMES && i < depth; i++) {
    const int reason = step();
    if (reason) {
      stop = reason;
      break;
    }
  }
  s->sample.stop = stop;
}
