// SPDX-License-Identifier: Apache-2.0
#include "agent/parse/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "agent/parse/request.h"
#include "base/fd.h"

namespace flamefleet::agent {
namespace {

constexpr uid_t kNobody = 65534;
constexpr rlim_t kMaxFiles = 64;

constexpr std::array kAllowedCalls = {
    SYS_pread64,      SYS_recvmsg,       SYS_recvfrom,  SYS_sendto,  SYS_close,
    SYS_brk,          SYS_munmap,        SYS_mremap,    SYS_madvise, SYS_futex,
    SYS_setitimer,    SYS_clock_gettime, SYS_getrandom, SYS_exit,    SYS_exit_group,
    SYS_rt_sigreturn, SYS_rt_sigprocmask};

// Libraries try these and go on without: a debug file of a debug file, for example.
constexpr std::array kRefusedCalls = {
#if defined(__x86_64__)
    // Newer processors have only those with "at".
    SYS_open,   SYS_stat,       SYS_lstat, SYS_readlink,   SYS_access,
#endif
    SYS_openat, SYS_newfstatat, SYS_fstat, SYS_readlinkat, SYS_faccessat,
    SYS_fcntl,  SYS_ioctl,      SYS_write};

#if defined(__x86_64__)
constexpr uint32_t kAuditArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kAuditArch = AUDIT_ARCH_AARCH64;
#endif

class Filter {
 public:
  Filter() {
    Load(offsetof(seccomp_data, arch));
    Add(BPF_JMP | BPF_JEQ | BPF_K, kAuditArch, 1, 0);
    Return(SECCOMP_RET_KILL_PROCESS);
    Load(offsetof(seccomp_data, nr));
  }

  // The number is loaded before and after each of these.
  void OnCall(long number, uint32_t action) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1);
    Return(action);
  }
  // Memory that nobody can execute; with `anonymous`, that is no file either.
  void AllowMemoryCall(long number, bool anonymous) {
    const auto steps = static_cast<uint8_t>(anonymous ? 6 : 4);
    Add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, steps);
    Load(offsetof(seccomp_data, args[2]));
    Add(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, static_cast<uint8_t>(anonymous ? 3 : 1), 0);
    if (anonymous) {
      Load(offsetof(seccomp_data, args[3]));
      Add(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1);
    }
    Return(SECCOMP_RET_ALLOW);
    Return(SECCOMP_RET_KILL_PROCESS);
  }
  void Return(uint32_t action) { Add(BPF_RET | BPF_K, action, 0, 0); }

  Status Install() {
    const sock_fprog program{.len = static_cast<unsigned short>(code_.size()),
                             .filter = code_.data()};
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      return ErrnoError(errno, "install the filter of system calls");
    return OkStatus();
  }

 private:
  void Load(size_t offset) { Add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset), 0, 0); }
  void Add(int code, uint32_t value, uint8_t if_true, uint8_t if_false) {
    code_.push_back({static_cast<uint16_t>(code), if_true, if_false, value});
  }

  std::vector<sock_filter> code_;
};

Status FilterCalls() {
  Filter filter;
  for (const long number : kAllowedCalls)
    filter.OnCall(number, SECCOMP_RET_ALLOW);
  for (const long number : kRefusedCalls)
    filter.OnCall(number, SECCOMP_RET_ERRNO | EPERM);
  filter.AllowMemoryCall(SYS_mmap, /*anonymous=*/true);
  filter.AllowMemoryCall(SYS_mprotect, /*anonymous=*/false);
  // Also what x32 numbers ask for.
  filter.Return(SECCOMP_RET_KILL_PROCESS);
  return filter.Install();
}

void LimitResource(__rlimit_resource resource, rlim_t value) {
  const rlimit limit{.rlim_cur = value, .rlim_max = value};
  ::setrlimit(resource, &limit);  // lowering always works
}

void LimitResources() {
  LimitResource(RLIMIT_CORE, 0);
  LimitResource(RLIMIT_FSIZE, 0);
  LimitResource(RLIMIT_NPROC, 0);
  LimitResource(RLIMIT_NOFILE, kMaxFiles);
  LimitResource(RLIMIT_CPU, kMaxParserCpuSeconds);
  // One arena: another one would look for the number of CPUs when memory is short.
  ::mallopt(M_ARENA_MAX, 1);
  if (kSandboxIsWhole) LimitResource(RLIMIT_AS, kMaxParserAddressBytes);
}

// Of both: what fails here without the right for it is made harmless by the filter.
void DropUser() {
  if (::setgroups(0, nullptr) != 0) return;
  if (::setresgid(kNobody, kNobody, kNobody) != 0) return;
  (void)!::setresuid(kNobody, kNobody, kNobody);
}

Status DropCapabilities() {
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return ErrnoError(errno, "drop capabilities");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return ErrnoError(errno, "forbid new privileges");
  return OkStatus();
}

// When memory is short, rather this process than the agent.
void VolunteerForOom() {
  const Result<UniqueFd> fd = OpenFile("/proc/self/oom_score_adj", O_WRONLY);
  if (fd.ok()) (void)!::write(fd->get(), "1000", 4);
}

}  // namespace

Status EnterSandbox() {
  VolunteerForOom();
  if (::chdir("/") != 0) return ErrnoError(errno, "chdir to /");
  ::syscall(SYS_close_range, 3U, ~0U, 0U);  // the parent's are O_CLOEXEC; older filters refuse it
  LimitResources();
  DropUser();
  FF_RETURN_IF_ERROR(DropCapabilities());
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return kSandboxIsWhole ? FilterCalls() : OkStatus();
}

}  // namespace flamefleet::agent
