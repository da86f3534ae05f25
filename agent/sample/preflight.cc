// SPDX-License-Identifier: Apache-2.0
#include "agent/sample/preflight.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <compare>
#include <cstdio>
#include <cstdlib>

#include "base/fd.h"

namespace flamefleet::agent {
namespace {

// linux/capability.h of older kernels has no names for these.
constexpr int kCapPerfmon = 38;
constexpr int kCapBpf = 39;
constexpr int kCapCheckpointRestore = 40;

struct WantedCapability {
  int number;
  const char* name;
  bool in_sys_admin;  // CAP_SYS_ADMIN includes it
  bool fatal;
  const char* effect;
};

constexpr std::array kWantedCapabilities = {
    WantedCapability{kCapBpf, "CAP_BPF", true, true, "the sampling program cannot be loaded"},
    WantedCapability{kCapPerfmon, "CAP_PERFMON", true, true, "CPUs cannot be sampled"},
    WantedCapability{CAP_SYS_PTRACE, "CAP_SYS_PTRACE", false, false,
                     "frames of other users' processes have no names"},
    WantedCapability{kCapCheckpointRestore, "CAP_CHECKPOINT_RESTORE", true, false,
                     "programs that were deleted or replaced have no names"},
    WantedCapability{CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH", false, false,
                     "programs in unreadable folders have no names"},
    WantedCapability{CAP_SYSLOG, "CAP_SYSLOG", true, false, "kernel frames have no names"},
};

struct KernelVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend auto operator<=>(const KernelVersion&, const KernelVersion&) = default;
};

// Ring buffers and CAP_BPF came in 5.8, map memory outside RLIMIT_MEMLOCK in 5.11.
constexpr KernelVersion kOldestKernel{5, 11, 0};

// Kernels that can freeze when a sample is taken while the kernel allocates: copy_from_user_nofault
// waits for a lock that the interrupted code holds. [first, fixed).
// Source: upstream commit d319f344561d "mm: Fix copy_from_user_nofault()"
struct KernelRange {
  KernelVersion first;
  KernelVersion fixed;
};
constexpr std::array kFreezingKernels = {
    KernelRange{{5, 19, 0}, {6, 1, 36}},  // 5.19 and 6.0 were never fixed
    KernelRange{{6, 2, 0}, {6, 3, 10}},   // nor was 6.2
};

bool ParseVersion(const std::string& text, KernelVersion* version) {
  *version = {};
  return std::sscanf(text.c_str(), "%d.%d.%d", &version->major, &version->minor, &version->patch) >=
         2;
}

// Distributions keep the release at x.y.0 and say elsewhere which upstream version it is.
KernelVersion UpstreamVersion(const HostFacts& facts) {
  KernelVersion version;
  const std::string debian = "Debian ";
  if (const size_t at = facts.kernel_version.find(debian);
      at != std::string::npos &&
      ParseVersion(facts.kernel_version.substr(at + debian.size()), &version))
    return version;
  if (const size_t at = facts.ubuntu_signature.rfind(' ');
      at != std::string::npos && ParseVersion(facts.ubuntu_signature.substr(at + 1), &version))
    return version;
  ParseVersion(facts.kernel_release, &version);
  return version;
}

std::string Text(const KernelVersion& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
         std::to_string(version.patch);
}

bool Has(const HostFacts& facts, int capability) {
  return ((facts.capabilities >> capability) & 1) != 0;
}

void CheckKernel(const HostFacts& facts, std::vector<PreflightProblem>* problems) {
  const KernelVersion version = UpstreamVersion(facts);
  if (version < kOldestKernel) {
    problems->push_back({true, "kernel " + facts.kernel_release + " is too old: update to " +
                                   Text(kOldestKernel) + " or later"});
  }
  for (const KernelRange& range : kFreezingKernels) {
    if (version < range.first || version >= range.fixed) continue;
    problems->push_back({true, "kernel " + Text(version) +
                                   " can freeze while it is profiled: update to " +
                                   Text(range.fixed) + " or later"});
  }
  if (!facts.has_btf) {
    problems->push_back({true,
                         "/sys/kernel/btf/vmlinux is missing: use a kernel built with "
                         "CONFIG_DEBUG_INFO_BTF=y, or mount the host's /sys"});
  }
  if (facts.lockdown.find("[confidentiality]") != std::string::npos) {
    problems->push_back({true,
                         "kernel lockdown is \"confidentiality\", which forbids BPF to read "
                         "stacks: boot with lockdown=integrity"});
  }
}

}  // namespace

std::vector<PreflightProblem> CheckHost(const HostFacts& facts) {
  std::vector<PreflightProblem> problems;
  const bool admin = Has(facts, CAP_SYS_ADMIN);
  for (const WantedCapability& wanted : kWantedCapabilities) {
    if (Has(facts, wanted.number) || (wanted.in_sys_admin && admin)) continue;
    problems.push_back({wanted.fatal, std::string(wanted.name) + " is missing: " + wanted.effect +
                                          "; run as root, or add it to "
                                          "securityContext.capabilities.add"});
  }
  // Debian and Ubuntu: from 3 on, perf_event_open needs CAP_SYS_ADMIN, whatever else one has.
  if (facts.perf_event_paranoid >= 3 && !admin) {
    problems.push_back({true, "kernel.perf_event_paranoid is " +
                                  std::to_string(facts.perf_event_paranoid) +
                                  ", which shuts out CAP_PERFMON: set it on the node with "
                                  "sysctl kernel.perf_event_paranoid=2"});
  }
  if (facts.pid_namespace != 0) {
    problems.push_back({false,
                        "this process is in a PID namespace of its own and profiles only what is "
                        "in it: set hostPID: true (docker run --pid=host), unless the whole node "
                        "is a container (kind, Docker in Docker)"});
  }
  CheckKernel(facts, &problems);
  return problems;
}

uint32_t OwnPidNamespace() {
  constexpr ino_t kInitial = 0xEFFFFFFC;  // PROC_PID_INIT_INO of the kernel
  struct stat info {};
  if (::stat("/proc/self/ns/pid", &info) != 0 || info.st_ino == kInitial) return 0;
  return static_cast<uint32_t>(info.st_ino);
}

HostFacts GatherHostFacts() {
  constexpr size_t kMaxBytes = 64 << 10;
  const auto read = [](const char* path) {
    return ReadFile(path, kMaxBytes).value_or(std::string());
  };
  HostFacts facts;
  const std::string status = read("/proc/self/status");
  const std::string key = "CapEff:";
  if (const size_t at = status.find(key); at != std::string::npos)
    facts.capabilities = std::strtoull(status.c_str() + at + key.size(), nullptr, 16);
  utsname names{};
  if (::uname(&names) == 0) {
    facts.kernel_release = names.release;
    facts.kernel_version = names.version;
  }
  facts.ubuntu_signature = read("/proc/version_signature");
  while (!facts.ubuntu_signature.empty() && facts.ubuntu_signature.back() == '\n')
    facts.ubuntu_signature.pop_back();
  facts.lockdown = read("/sys/kernel/security/lockdown");
  facts.perf_event_paranoid = std::atoi(read("/proc/sys/kernel/perf_event_paranoid").c_str());
  facts.has_btf = ::access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  facts.pid_namespace = OwnPidNamespace();
  return facts;
}

}  // namespace flamefleet::agent
