// SPDX-License-Identifier: Apache-2.0
// Each forbidden thing is tried for real, by a child process in the sandbox.
#include "agent/parse/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace flamefleet::agent {
namespace {

constexpr int kNoSandbox = 99;

// How a process ends that does this in the sandbox: its exit code, or minus the signal.
int EndOf(const std::function<int()>& action) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(EnterSandbox().ok() ? action() : kNoSandbox);
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int CodeOf(long result) {
  return result < 0 ? errno : 0;
}

TEST(Sandbox, NoNameLeadsToAFile) {
  if (!kSandboxIsWhole) return;
  EXPECT_EQ(EndOf([] { return CodeOf(::open("/etc/passwd", O_RDONLY)); }), EPERM);
  EXPECT_EQ(EndOf([] { return CodeOf(::access("/etc/passwd", F_OK)); }), EPERM);
  char target[64];
  EXPECT_EQ(EndOf([&] { return CodeOf(::readlink("/proc/self/exe", target, sizeof(target))); }),
            EPERM);
}

TEST(Sandbox, EverythingElseKills) {
  if (!kSandboxIsWhole) return;
  const std::map<std::string, std::function<int()>> attempts = {
      {"socket", [] { return CodeOf(::socket(AF_INET, SOCK_STREAM, 0)); }},
      {"fork", [] { return CodeOf(::fork()); }},
      {"execve", [] { return CodeOf(::execl("/bin/true", "true", nullptr)); }},
      {"kill", [] { return CodeOf(::kill(::getppid(), 0)); }},
      {"ptrace", [] { return CodeOf(::ptrace(PTRACE_TRACEME, 0, 0, 0)); }},
      {"openat2", [] { return CodeOf(::syscall(SYS_openat2, 0, "x", nullptr, 0)); }},
      {"setuid", [] { return CodeOf(::setuid(0)); }},
      {"process_vm_readv",
       [] { return CodeOf(::process_vm_readv(::getppid(), nullptr, 0, nullptr, 0, 0)); }},
      {"x32 read", [] { return CodeOf(::syscall(0x40000000, 0, nullptr, 0)); }},
      {"executable memory",
       [] {
         return CodeOf(reinterpret_cast<long>(
             ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
       }},
      {"a mapped file",
       [] {
         return CodeOf(reinterpret_cast<long>(::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, 0, 0)));
       }},
      {"memory made executable",
       [] {
         void* const memory = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return CodeOf(::mprotect(memory, 4096, PROT_READ | PROT_EXEC));
       }},
  };
  for (const auto& [name, attempt] : attempts)
    EXPECT_EQ(EndOf(attempt), -SIGSYS) << name;
}

TEST(Sandbox, MemoryEnds) {
  if (!kSandboxIsWhole) return;
  EXPECT_EQ(EndOf([] { return std::malloc(size_t{1} << 30) == nullptr ? 0 : 1; }), 0);
  // In small pieces as well, which glibc takes from elsewhere.
  EXPECT_EQ(EndOf([] {
              for (int i = 0; i < 1 << 20; ++i) {
                if (std::malloc(1024) == nullptr) return 0;
              }
              return 1;
            }),
            0);
}

TEST(Sandbox, OnlyTheFirstThreeDescriptorsStay) {
  if (!kSandboxIsWhole) return;
  const int fd = ::open("/dev/null", O_RDONLY);
  char byte = 0;
  EXPECT_EQ(EndOf([&] { return CodeOf(::pread(fd, &byte, 1, 0)); }), EBADF);
  ::close(fd);
}

}  // namespace
}  // namespace flamefleet::agent
