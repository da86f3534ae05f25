// SPDX-License-Identifier: Apache-2.0
// Preflight: can this host be sampled with the rights we have? One line per thing that is missing,
// with what to do.
//
// GatherHostFacts reads /proc and /sys; CheckHost is pure, so that every answer is tested.
//
// Thread: any. Errors: none; what cannot be read is assumed to be fine, the kernel will say
// otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flamefleet::agent {

struct HostFacts {
  uint64_t capabilities = 0;     // effective set, bit n is capability n
  std::string kernel_release;    // uname -r
  std::string kernel_version;    // uname -v; Debian's has the upstream version
  std::string ubuntu_signature;  // /proc/version_signature; Ubuntu only
  std::string lockdown;          // "none [integrity] confidentiality"; "" when not readable
  int perf_event_paranoid = 0;   // sysctl kernel.perf_event_paranoid
  bool has_btf = false;          // /sys/kernel/btf/vmlinux is readable
  uint32_t pid_namespace = 0;    // as OwnPidNamespace
};

struct PreflightProblem {
  bool fatal = false;  // sampling cannot work; else something is missing from the profiles
  std::string text;    // what is missing, what it costs, what to do
};

// Inode number of this process's PID namespace; 0: the initial one, or it cannot be told.
uint32_t OwnPidNamespace();

HostFacts GatherHostFacts();
std::vector<PreflightProblem> CheckHost(const HostFacts& facts);

}  // namespace flamefleet::agent
