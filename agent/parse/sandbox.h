// SPDX-License-Identifier: Apache-2.0
// The sandbox of the parsing child: what is left to a process that reads files of its enemies.
//
// Afterwards it can compute, take memory that is neither a file nor executable, read descriptors
// that it was given, talk on those it has, and end. It has no capability and cannot get one, no
// name leads it to a file (EPERM), every other system call kills it. Memory, CPU time and core
// files are limited (request.h); when memory is short the kernel ends it before the agent.
//
// Nothing of this needs a right that the agent's DaemonSet does not have. Its user becomes nobody
// where CAP_SETUID allows that; in the DaemonSet it stays user 0 without capabilities, which the
// filter makes the same: no call that asks for a user is left.
//
// Thread: the only one of the process. Errors: kUnavailable, kPermissionDenied: the kernel refuses;
// the caller must end.
// Source: seccomp(2), capabilities(7)
#pragma once

#include "base/status.h"

namespace flamefleet::agent {

// Sanitizers need calls and memory that are forbidden here: built with one, only privileges go.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSandboxIsWhole = false;
#else
constexpr bool kSandboxIsWhole = true;
#endif

// Keeps descriptors 0, 1 and 2, closes all others.
Status EnterSandbox();

}  // namespace flamefleet::agent
