// SPDX-License-Identifier: Apache-2.0
// Reads what .gopclntab says of the stack pointer of Go's functions: unwind rules of a Go program,
// stripped or not.
//
// Go keeps frame pointers, but not in functions that call nothing, and assembly uses the register
// for other things: by frame pointers alone the caller of such a function is missing, and those
// functions are where the time goes.
//
// The section belongs to whoever is profiled: every offset and count in it is checked.
//
// Thread: any; pure. Units: addresses as the file gives them. Bounds: below, and kMaxFunctions.
// Errors: those of ReadGoTable; kResourceExhausted over a bound. A function that is damaged by
// itself is left out.
// Source: Go's src/runtime/symtab.go (_func, pcvalue, step), src/internal/abi/symtab.go (FuncFlag),
// src/cmd/internal/obj/x86/obj6.go (where BP is saved) and arm64/obj7.go, src/runtime/asm_amd64.s
// (changes of stacks)
#pragma once

#include <cstddef>

#include "agent/stack/cfi.h"
#include "agent/symbol/byte_source.h"
#include "agent/symbol/elf_file.h"
#include "base/status.h"

namespace flamefleet::agent {

constexpr size_t kMaxGoProgramBytes = 64 << 20;  // all of Kubernetes in one program has 10 MB
constexpr size_t kMaxGoSteps = 16 << 20;         // and 1.1 million

// Of `elf`, which has a go_pclntab; as ReadEhFrame does.
Status ReadGoRules(const ByteSource& source, const ElfFile& elf, const CfiVisitor& visit);

}  // namespace flamefleet::agent
