// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
// What the walk has to know of x86-64: the registers of an interrupted task, and how they and a
// rule lead to the caller's.
//
// Included by unwind.bpf.h only. Source: System V ABI AMD64, 3.2 and 3.6; arch/x86/include/uapi/asm
#pragma once

#define ADDRESS_MASK (~0ull)
#define FRAME_POINTER_TELLS_SP true

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
      if (read_stack(s, s->bp + rule.cfa_offset, &cfa)) return FF_STOP_FAULT;
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
  // Where the frame pointer is comes first: it is below the return address.
  u64 bp = s->bp;
  if (rule.bp == FF_BP_AT_CFA || rule.bp == FF_BP_AT_BP) {
    const u64 at = (rule.bp == FF_BP_AT_CFA ? cfa : bp) + rule.bp_offset;
    if (read_stack(s, at, &bp)) return FF_STOP_FAULT;
  } else if (rule.bp == FF_BP_UNKNOWN) {
    bp = 1;  // odd: no step by frame pointer takes it for one
  }
  u64 return_address;
  if (read_stack(s, cfa - 8, &return_address)) return FF_STOP_FAULT;
  if (return_address == 0) return FF_STOP_COMPLETE;
  s->ip = return_address;
  s->sp = cfa;
  s->bp = bp;
  s->is_caller = true;
  return 0;
}

// Moves to the caller if all that is left of the function is "add $N, %rsp; ret". False if it is
// not. So end the functions that CPython makes, one for each of the program's (-X perf), which have
// no frame pointer.
static __always_inline bool step_over_trampoline(struct scratch* s) {
  u8 code[5];
  if (!s->is_caller || bpf_probe_read_user(code, sizeof(code), (const void*)s->ip)) return false;
  const u8 size = code[3];
  if (code[0] != 0x48 || code[1] != 0x83 || code[2] != 0xc4 || size > 127 || code[4] != 0xc3)
    return false;
  u64 return_address;
  if (read_stack(s, s->sp + size, &return_address) || return_address == 0) return false;
  s->ip = return_address;
  s->sp += size + 8;
  return true;
}
