// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// What the walk has to know of arm64: the registers of an interrupted task, and how they and a rule
// lead to the caller's.
//
// A call leaves the return address in lr, and a function that calls others stores it with the frame
// pointer (x29, here bp) as a pair, to which bp then points. That pair is at the lower end of the
// frame: a step by frame pointer does not tell where the caller's stack pointer is.
//
// Included by unwind.bpf.h only. Source: Procedure Call Standard for the Arm 64-bit Architecture,
// 6; arch/arm64/include/uapi/asm (ptrace.h, sigcontext.h), arch/arm64/kernel/signal.c
#pragma once

// Addresses have 48 bits; above them is the signature of a return address (pointer authentication).
#define ADDRESS_MASK ((1ull << 48) - 1)

#define FRAME_POINTER_TELLS_SP false

// Distances from the stack pointer of a signal frame: siginfo, then ucontext.
#define SIGNAL_BP 544  // x29, x30, sp, pc follow each other

// Of the kernel's own struct, what follows the registers.
struct pt_regs___arm64 {
  int syscallno;  // negative: not in a system call
} __attribute__((preserve_access_index));

static __always_inline bool is_user_mode(const struct bpf_perf_event_data* ctx) {
  return (ctx->regs.pstate & PSR_MODE_MASK) == PSR_MODE_EL0t;
}

// Fills ip, sp, bp and lr with the user registers of the current task. False when there are none.
// After the instruction of a system call ip is where a return address would be: behind it.
static __always_inline bool read_user_registers(struct bpf_perf_event_data* ctx,
                                                struct scratch* s) {
  s->is_sp_lost = false;
  if (is_user_mode(ctx)) {
    s->ip = ctx->regs.pc;
    s->sp = ctx->regs.sp;
    s->bp = ctx->regs.regs[29];
    s->lr = ctx->regs.regs[30] & ADDRESS_MASK;
    s->is_caller = false;
    return true;
  }
  if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) return false;
  void* const regs = (void*)bpf_task_pt_regs(bpf_get_current_task_btf());
  struct user_pt_regs* const user = regs;
  u64 pair[2];  // x29, x30
  u64 sp_pc[2];
  if (!regs || bpf_probe_read_kernel(pair, sizeof(pair), &user->regs[29]) ||
      bpf_probe_read_kernel(sp_pc, sizeof(sp_pc), &user->sp))
    return false;
  s->ip = sp_pc[1];
  s->sp = sp_pc[0];
  s->bp = pair[0];
  s->lr = pair[1] & ADDRESS_MASK;
  s->is_caller = BPF_CORE_READ((struct pt_regs___arm64*)regs, syscallno) >= 0;
  return true;
}

static __always_inline int step_over_signal(struct scratch* s) {
  u64 registers[4];
  if (s->is_sp_lost) return FF_STOP_BAD_CFA;
  if (bpf_probe_read_user(registers, sizeof(registers), (const void*)(s->sp + SIGNAL_BP)))
    return FF_STOP_FAULT;
  s->bp = registers[0];
  s->lr = registers[1] & ADDRESS_MASK;
  s->sp = registers[2];
  s->ip = registers[3];
  s->is_caller = false;  // it was interrupted there
  return 0;
}

// Moves to the caller by s->rule. 0, or why the walk ends.
static __always_inline int step_by_rule(struct scratch* s) {
  const struct ff_unwind_rule rule = s->rule;
  u64 cfa = 0;
  switch (rule.cfa) {
    case FF_CFA_SP:
      if (s->is_sp_lost) return step_by_frame_pointer(s, FF_STOP_BAD_CFA);
      cfa = s->sp + rule.cfa_offset;
      break;
    case FF_CFA_BP:
      cfa = s->bp + rule.cfa_offset;
      break;
    case FF_CFA_SIGNAL:
      return step_over_signal(s);
    case FF_CFA_OTHER_STACK:
      s->sp = s->bp;  // there
      return step_by_frame_pointer(s, FF_STOP_BAD_CFA);
    default:
      return FF_STOP_COMPLETE;  // FF_CFA_END
  }
  // Of functions that store nothing only the innermost can be on the stack, and need none of it.
  if (cfa < s->sp || (cfa == s->sp && !s->lr)) return FF_STOP_BAD_CFA;
  u64 return_address = s->lr;
  u64 bp = s->bp;
  if (rule.bp == FF_BP_AT_CFA) {
    if (read_stack(s, cfa + rule.bp_offset, &bp) ||
        read_stack(s, cfa + rule.bp_offset + 8, &return_address))
      return FF_STOP_FAULT;
    return_address &= ADDRESS_MASK;
  } else if (rule.bp != FF_BP_SAME) {
    if (read_stack(s, cfa + rule.bp_offset, &return_address)) return FF_STOP_FAULT;
    return_address &= ADDRESS_MASK;
    if (rule.bp == FF_BP_UNKNOWN) bp = 1;  // odd: no step by frame pointer takes it for one
  } else if (!s->lr) {
    return FF_STOP_BAD_CFA;
  }
  if (return_address == 0) return FF_STOP_COMPLETE;
  s->ip = return_address;
  s->sp = cfa;
  s->is_sp_lost = false;
  s->bp = bp;
  s->lr = 0;
  s->is_caller = true;
  return 0;
}

// There all of these have a frame pointer.
static __always_inline bool step_over_trampoline(struct scratch* s) {
  (void)s;
  return false;
}
