// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// What the walk has to know of x86-64: the registers of an interrupted task, and how they and a
// rule lead to the caller's.
//
// Included by unwind.bpf.h only. Source: System V ABI AMD64, 3.2 and 3.6; arch/x86/include/uapi/asm
#pragma once

static __always_inline bool is_user_mode(const struct bpf_perf_event_data* ctx) {
  return (ctx->regs.cs & 3) == 3;
}

// Fills ip, sp and bp with the user registers of the current task. False when there are none. After
// the instruction of a system call ip is where a return address would be: behind it, which may be
// the end of the function (__restore_rt).
static __always_inline bool read_user_registers(struct bpf_perf_event_data* ctx,
                                                struct scratch* s) {
  if (is_user_mode(ctx)) {
    s->ip = ctx->regs.rip;
    s->sp = ctx->regs.rsp;
    s->bp = ctx->regs.rbp;
    s->is_caller = false;
    return true;
  }
  if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)) return false;
  struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(bpf_get_current_task_btf());
  struct pt_regs user;
  if (!regs || bpf_probe_read_kernel(&user, sizeof(user), regs)) return false;
  s->ip = user.rip;
  s->sp = user.rsp;
  s->bp = user.rbp;
  // A call has a number, and the processor keeps its ip in rcx; a signal's handler comes with
  // another.
  s->is_caller = (long)user.orig_rax >= 0 && user.rcx == user.rip;
  return true;
}

// Moves to the caller by frame pointer. 0, or why the walk ends; `reason` if bp is no frame
// pointer.
static __always_inline int step_by_frame_pointer(struct scratch* s, int reason) {
  const u64 bp = s->bp;
  // Before the tables are there, nothing tells the outermost frame from a register that is 0.
  const int end = reason == FF_STOP_NOT_READY ? reason : FF_STOP_COMPLETE;
  if (bp == 0) return end;
  if ((bp & 7) || bp < s->sp || bp - s->sp > MAX_FRAME_BYTES) return reason;
  u64 frame[2];  // the caller's frame pointer, the return address
  if (bpf_probe_read_user(frame, sizeof(frame), (const void*)bp)) return FF_STOP_FAULT;
  if (frame[1] == 0) return end;
  s->ip = frame[1];
  s->sp = bp + sizeof(frame);
  s->bp = frame[0];
  s->is_caller = true;
  return 0;
}

static __always_inline int step_over_signal(struct scratch* s) {
  // The saved registers from bp on: bp, bx, dx, ax, cx, sp, ip.
  u64 registers[(FF_SIGNAL_IP - FF_SIGNAL_BP) / 8 + 1];
  if (bpf_probe_read_user(registers, sizeof(registers), (const void*)(s->sp + FF_SIGNAL_BP)))
    return FF_STOP_FAULT;
  s->bp = registers[0];
  s->sp = registers[(FF_SIGNAL_SP - FF_SIGNAL_BP) / 8];
  s->ip = registers[(FF_SIGNAL_IP - FF_SIGNAL_BP) / 8];
  s->is_caller = false;  // it was interrupted there
  return 0;
}

// Moves to the caller by s->rule. 0, or why the walk ends.
static __always_inline int step_by_rule(struct scratch* s) {
  const struct ff_unwind_rule rule = s->rule;
  u64 cfa = 0;
  switch (rule.cfa) {
    case FF_CFA_SP:
      cfa = s->sp + rule.cfa_offset;
      break;
    case FF_CFA_BP:
      cfa = s->bp + rule.cfa_offset;
      break;
    case FF_CFA_DEREF_BP:
      if (bpf_probe_read_user(&cfa, sizeof(cfa), (const void*)(s->bp + rule.cfa_offset)))
        return FF_STOP_FAULT;
      break;
    case FF_CFA_PLT:
      cfa = s->sp + 8 + ((int)(s->ip & 15) >= rule.cfa_offset ? 8 : 0);
      break;
    case FF_CFA_SIGNAL:
      return step_over_signal(s);
    case FF_CFA_OTHER_STACK:
      if (s->bp == 0) return FF_STOP_COMPLETE;
      cfa = s->bp + 16;
      break;
    default:
      return FF_STOP_COMPLETE;  // FF_CFA_END
  }
  if (cfa <= s->sp && rule.cfa != FF_CFA_OTHER_STACK) return FF_STOP_BAD_CFA;
  // Where functions push the frame pointer, if they do, and the return address above it.
  u64 frame[2];
  u64 bp = s->bp;
  const bool is_pair = rule.bp == FF_BP_AT_CFA && rule.bp_offset == -(int)sizeof(frame);
  if (is_pair ? bpf_probe_read_user(frame, sizeof(frame), (const void*)(cfa - sizeof(frame)))
              : bpf_probe_read_user(&frame[1], sizeof(frame[1]), (const void*)(cfa - 8)))
    return FF_STOP_FAULT;
  const u64 return_address = frame[1];
  if (return_address == 0) return FF_STOP_COMPLETE;
  if (is_pair) {
    bp = frame[0];
  } else if (rule.bp == FF_BP_AT_CFA || rule.bp == FF_BP_AT_BP) {
    const u64 at = (rule.bp == FF_BP_AT_CFA ? cfa : bp) + rule.bp_offset;
    if (bpf_probe_read_user(&bp, sizeof(bp), (const void*)at)) return FF_STOP_FAULT;
  } else if (rule.bp == FF_BP_UNKNOWN) {
    bp = 1;  // odd: no step by frame pointer takes it for one
  }
  s->ip = return_address;
  s->sp = cfa;
  s->bp = bp;
  s->is_caller = true;
  return 0;
}
