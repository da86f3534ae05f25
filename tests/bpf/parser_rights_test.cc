// SPDX-License-Identifier: Apache-2.0
// The parsing child with just the rights that the DaemonSet gives the agent.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "agent/symbol/symbol_request.h"
#include "tests/support/skip.h"

namespace flamefleet::agent {
namespace {

// BPF, PERFMON, SYS_PTRACE, CHECKPOINT_RESTORE, DAC_READ_SEARCH, SYSLOG.
constexpr std::array kAgentCapabilities = {39, 38, 19, 40, 2, 34};

bool KeepOnlyAgentCapabilities() {
  uint64_t wanted = 0;
  for (const int number : kAgentCapabilities)
    wanted |= uint64_t{1} << number;
  for (int number = 0; number < 64; ++number) {
    if ((wanted >> number & 1) == 0) ::prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
  }
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  for (int half = 0; half < 2; ++half) {
    data[half].permitted = static_cast<uint32_t>(wanted >> (32 * half));
    data[half].effective = data[half].permitted;
  }
  return ::syscall(SYS_capset, &header, data) == 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// 0, or which step went wrong.
int ParseWithAgentCapabilities() {
  if (!KeepOnlyAgentCapabilities()) return 1;
  const std::shared_ptr<ParserProcess> parser = ParserProcess::Installed();
  const Result<UniqueFd> fd = OpenFile("/proc/self/exe", 0);
  if (!fd.ok()) return 2;
  const int files[] = {fd->get()};
  std::string encoded;
  const Result<ProgramSymbols> symbols = RequestSymbols(parser.get(), files, &encoded);
  if (!symbols.ok() || symbols->table.size() == 0) return 3;
  const std::string status =
      *ReadFile("/proc/" + std::to_string(parser->pid()) + "/status", 64 << 10);
  if (status.find("CapEff:\t0000000000000000") == std::string::npos) return 4;
  if (status.find("Seccomp:\t2") == std::string::npos) return 5;
  return 0;
}

TEST(ParserRights, TheChildNeedsNoneThatTheDaemonSetDoesNotGive) {
  if (::geteuid() != 0) FF_SKIP("needs root");
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(ParseWithAgentCapabilities());
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace flamefleet::agent
