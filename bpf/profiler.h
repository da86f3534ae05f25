// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// What bpf/profiler.bpf.c and the agent tell each other: records of the ring buffer, map keys and
// values, configuration.
//
// The one header both sides include (clang -target bpf and g++). Fixed widths only; sizes are
// asserted. A number in an enum is part of the contract of one build, not of a file format: kernel
// program and agent are always built together.
#pragma once

#ifdef __cplusplus
#include <cstdint>
#define FF_STATIC_ASSERT static_assert
using ff_u8 = std::uint8_t;
using ff_u16 = std::uint16_t;
using ff_u32 = std::uint32_t;
using ff_u64 = std::uint64_t;
using ff_s16 = std::int16_t;
using ff_s32 = std::int32_t;
#else
#define FF_STATIC_ASSERT _Static_assert
typedef __u8 ff_u8;
typedef __u16 ff_u16;
typedef __u32 ff_u32;
typedef __u64 ff_u64;
typedef __s16 ff_s16;
typedef __s32 ff_s32;
#endif

enum {
  FF_MAX_KERNEL_FRAMES = 127,  // as kernel.perf_event_max_stack's default
  FF_MAX_USER_FRAMES = 511,    // that can be asked for
  FF_FRAMES = 1024,  // room for both, a power of two: the verifier accepts index & (FF_FRAMES - 1)
  FF_COMM_BYTES = 16,          // TASK_COMM_LEN of the kernel, with the final 0
  FF_CGROUP_NAMES = 16,        // a cgroup and its ancestors: a pod in a node in a pod (kind) has 12
  FF_CGROUP_NAME_BYTES = 256,  // NAME_MAX; in use "<slice of a pod>:cri-containerd:<id>", 145
  FF_MAX_CGROUPS = 16384,      // with a verdict; the least recently used go and are reported again
  FF_MAX_PIDS = 1024,          // processes of scope FF_SCOPE_PIDS
  FF_MAX_MET_PROCESSES = 4096,  // that have woken the agent; one that was forgotten does so again
};

// Whose samples are recorded.
enum ff_scope {
  FF_SCOPE_CGROUPS = 0,  // processes whose cgroup has the verdict FF_CGROUP_WANTED
  FF_SCOPE_HOST = 1,     // every process but the idle task
  FF_SCOPE_PIDS = 2,     // processes in the map `pids`
};

// Value of the map `cgroups` (key: ff_u64 cgroup id).
enum ff_verdict {
  FF_CGROUP_REPORTED = 0,  // a ff_cgroup_record was sent, the agent has not answered yet
  FF_CGROUP_WANTED = 1,
  FF_CGROUP_UNWANTED = 2,
};

// Index into the per-CPU array `counters`; each element is a ff_u64.
enum ff_counter {
  FF_COUNT_EVENTS = 0,            // timer events that met a task other than the idle one
  FF_COUNT_SENT = 1,              // samples put into the ring
  FF_COUNT_RING_FULL = 2,         // samples lost: no room in the ring
  FF_COUNT_CGROUP_PENDING = 3,    // samples skipped: verdict of the cgroup not known yet
  FF_COUNT_CGROUP_RING_FULL = 4,  // cgroup reports lost: no room; made again with the next sample
  FF_COUNT_ENDED_RING_FULL = 5,   // reports of ended processes lost: no room
  FF_COUNT_STOP = 6,  // + r: samples sent whose user stack ended for the reason r (enum ff_stop)
  FF_COUNT_RUN_NANOS = 16,  // run time of the sampling program, but for ticks of the idle task
  FF_COUNT_OTHER_NAMESPACE = 17,  // samples skipped: of a process that has no number in the agent's
                                  // PID namespace
  FF_COUNTERS = 18,
};

// Why the user stack of a sample ends where it ends. From FF_STOP_NOT_READY on it means as
// well that the frame pointer register holds none: it is not aligned, does not go up, or leaps by
// over 1 MiB.
enum ff_stop {
  FF_STOP_NONE = 0,          // there is no user stack: kernel thread, or an exiting task
  FF_STOP_COMPLETE = 1,      // the outermost frame: its rule says so, or a pointer up is 0
  FF_STOP_DEPTH = 2,         // as many frames as are asked for
  FF_STOP_FAULT = 3,         // the frame is not in memory
  FF_STOP_NO_REGISTERS = 4,  // sampled in the kernel, which cannot tell the user registers (< 5.15)
  FF_STOP_BAD_CFA = 5,       // the rule does not lead up the stack
  FF_STOP_NOT_READY = 6,     // the process is new: the agent has not prepared its mappings yet
  FF_STOP_NO_MAPPING = 7,    // the code was mapped since, or made at run time
  FF_STOP_NO_TABLE = 8,      // its file has no unwind table
  FF_STOP_NO_RULE = 9,       // the table has no rule for it
  FF_STOPS = 10,
};
FF_STATIC_ASSERT((int)FF_COUNT_STOP + (int)FF_STOPS <= (int)FF_COUNT_RUN_NANOS,
                 "counters do not fit");

// First field of every record in the ring.
enum ff_record_kind {
  FF_RECORD_SAMPLE = 1,
  FF_RECORD_CGROUP = 2,
  FF_RECORD_ENDED = 3,
};

enum ff_sample_flags {
  FF_SAMPLE_KERNEL_THREAD = 1,
};

// One sample. The record ends after the last frame in use: its size is FF_SAMPLE_HEADER_BYTES + 8 *
// (kernel + user frames).
struct ff_sample {
  ff_u32 kind;            // FF_RECORD_SAMPLE
  ff_u32 pid;             // process: what the kernel calls tgid; in the agent's PID namespace
  ff_u32 tid;             // thread: what the kernel calls pid; likewise
  ff_u8 flags;            // ff_sample_flags
  ff_u8 stop;             // enum ff_stop
  ff_u16 reserved;        // 0
  ff_u32 kernel_frames;   // frames[0 .. kernel_frames), innermost first
  ff_u32 user_frames;     // the frames after those, innermost first
  ff_u64 start_boottime;  // of the process, nanoseconds since boot: with pid its identity.
                          // /proc/PID/stat has it in 10 ms ticks
  ff_u64 exec_id;  // changes with each exec of the process: with the two above, the identity of its
                   // address space
  ff_u64 code_pages;  // how much it has mapped to be executed and not written: another number means
                      // another set of mappings
  ff_u64 cgroup_id;   // FF_SCOPE_CGROUPS: key in `cgroups`; 0 in other scopes
  char comm[FF_COMM_BYTES];         // of the process's main thread
  char thread_comm[FF_COMM_BYTES];  // of the thread itself
  // Instruction pointers, innermost first; of a caller the return address, of what a signal has
  // interrupted one more than its own: of all but the first, one less is inside the instruction.
  ff_u64 frames[FF_FRAMES];
};
enum { FF_SAMPLE_HEADER_BYTES = 88 };
FF_STATIC_ASSERT(sizeof(struct ff_sample) == FF_SAMPLE_HEADER_BYTES + 8 * FF_FRAMES,
                 "ff_sample has holes");

// Sent once per cgroup id that is seen: the names survive the process, so that its container is
// known when it has gone.
struct ff_cgroup_record {
  ff_u32 kind;       // FF_RECORD_CGROUP
  ff_u32 reserved;   // 0: keeps the next field aligned
  ff_u64 cgroup_id;  // inode number of its directory, and a bit for its hierarchy
  char names[FF_CGROUP_NAMES]
            [FF_CGROUP_NAME_BYTES];  // names[0]: the cgroup, then its ancestors; "" above the root
};
FF_STATIC_ASSERT(sizeof(struct ff_cgroup_record) == 16 + FF_CGROUP_NAMES * FF_CGROUP_NAME_BYTES,
                 "ff_cgroup_record has holes");

// Names one address space: an exec in place or a PID that is used again makes another one. Key of
// the map `unwind_processes`.
struct ff_process_key {
  ff_u64 start_boottime;  // as in ff_sample
  ff_u64 exec_id;
  ff_u32 pid;
  ff_u32 reserved;  // 0
};
FF_STATIC_ASSERT(sizeof(struct ff_process_key) == 24, "ff_process_key has holes");

// A process of the scope has exited or runs another program now.
struct ff_ended_record {
  ff_u32 kind;      // FF_RECORD_ENDED
  ff_u32 reserved;  // 0
  struct ff_process_key process;
  ff_u64 exec_ns;  // monotonic; when it began to run the other program; 0: it has exited
};
FF_STATIC_ASSERT(sizeof(struct ff_ended_record) == 40, "ff_ended_record has holes");

// Unwinding by tables: from a frame to its caller by the instruction pointer, without frame
// pointers.
//
// A process has a list of mappings, a mapping leads to the table of its file. Tables are shared
// between processes; their numbers are never used again, so that a stale one finds nothing instead
// of another file's table.
enum {
  FF_MAX_UNWIND_PROCESSES = 4096,
  FF_MAX_UNWIND_TABLES = 2048,
  FF_MAX_UNWIND_MAPPINGS = 1024,  // executable ones of one process; a power of two
  FF_UNWIND_PAGE_BITS = 12,       // small: a page has few rows, a search touches few cache lines
};

// Element of a process's array, which is in the order of addresses.
struct ff_mapping {
  ff_u64 start;
  ff_u64 end;       // first address behind it
  ff_u64 bias;      // address in the process minus address in the file
  ff_u32 table;     // key in the map `unwind_tables`; 0: there is none
  ff_u32 reserved;  // 0
};
FF_STATIC_ASSERT(sizeof(struct ff_mapping) == 32, "ff_mapping has holes");

// How to compute the CFA, which is the caller's stack pointer. On x86-64 the return address is just
// below it; on arm64 it is where enum ff_bp says. There bp is x29.
enum ff_cfa {
  FF_CFA_UNKNOWN = 0,   // outside of functions, or a rule that does not fit into this form
  FF_CFA_SP = 1,        // sp + cfa_offset
  FF_CFA_BP = 2,        // bp + cfa_offset
  FF_CFA_DEREF_BP = 3,  // x86-64: what is stored at bp + cfa_offset: functions that realign theirs
  FF_CFA_PLT = 4,       // x86-64: sp + 8, or + 16 when the low 4 bits of ip are >= cfa_offset
  FF_CFA_SIGNAL = 5,    // made by the kernel for a signal handler, with the registers in it
  FF_CFA_END = 6,       // there is no caller
  // The frame that bp points to (x86-64: bp + 16), which may be on another stack: functions that
  // leave their frame behind on the stack that they came from. bp is 0 when there is nothing to
  // come from.
  FF_CFA_OTHER_STACK = 7,
};

// Where the caller's frame pointer register is; on arm64, where the return address is as well.
enum ff_bp {
  FF_BP_SAME = 0,     // still in the register; arm64: and the return address in lr
  FF_BP_AT_CFA = 1,   // stored at CFA + bp_offset; arm64: the return address 8 bytes above it
  FF_BP_AT_BP = 2,    // x86-64: stored at bp + bp_offset
  FF_BP_UNKNOWN = 3,  // lost; arm64: the return address is at CFA + bp_offset
  FF_BP_SAME_LR_AT_CFA = 4,  // arm64: still in the register; the return address at CFA + bp_offset
};

// Distances from the stack pointer of a signal frame on x86-64: struct ucontext of the kernel's
// uapi.
enum { FF_SIGNAL_BP = 120, FF_SIGNAL_SP = 160, FF_SIGNAL_IP = 168 };

struct ff_unwind_rule {
  ff_s32 cfa_offset;
  ff_s16 bp_offset;
  ff_u8 cfa;  // enum ff_cfa
  ff_u8 bp;   // enum ff_bp
};
FF_STATIC_ASSERT(sizeof(struct ff_unwind_rule) == 8, "ff_unwind_rule is not one word");

// A table is an array of words of 8 bytes:
//   - the number of its first page; a page is 4 KiB of addresses as the file gives them
//   - low half: how many pages; high half: how many rules
//   - for each page, low half: its first row; high half: how many rows
//   - the rules, struct ff_unwind_rule; rule 0 is FF_CFA_UNKNOWN
//   - the rows, two in a word, the low half first
// A row has 32 bits: low half, the first address it is for, from the start of the page; high half,
// the number of its rule. It holds up to the next row. The first row of a page is for the first
// address of the page.
enum { FF_UNWIND_HEADER_WORDS = 2 };

// Set before loading (.rodata), so that the verifier removes what is not used.
struct ff_config {
  ff_u32 scope;          // enum ff_scope
  ff_u32 pid_namespace;  // inode number of the agent's; 0: the initial one
};
