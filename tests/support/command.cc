// SPDX-License-Identifier: Apache-2.0
#include "tests/support/command.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/fd.h"
#include "base/status.h"

namespace flamefleet {
namespace {

// Files in memory instead of pipes: nothing can block, whatever the sizes.
UniqueFd MemoryFile(const std::string& content) {
  UniqueFd fd(memfd_create("command", MFD_CLOEXEC));
  FF_CHECK(fd.ok());
  FF_CHECK(::write(fd.get(), content.data(), content.size()) ==
           static_cast<ssize_t>(content.size()));
  FF_CHECK(::lseek(fd.get(), 0, SEEK_SET) == 0);
  return fd;
}

std::string Content(const UniqueFd& fd) {
  std::string content(static_cast<size_t>(::lseek(fd.get(), 0, SEEK_END)), '\0');
  FF_CHECK(::pread(fd.get(), content.data(), content.size(), 0) ==
           static_cast<ssize_t>(content.size()));
  return content;
}

}  // namespace

CommandResult RunCommand(const std::vector<std::string>& argv, const std::string& input) {
  const UniqueFd in = MemoryFile(input);
  const UniqueFd out = MemoryFile("");
  const UniqueFd err = MemoryFile("");
  std::vector<char*> arguments;
  for (const std::string& argument : argv)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  const pid_t pid = ::fork();
  FF_CHECK(pid >= 0);
  if (pid == 0) {
    ::dup2(in.get(), STDIN_FILENO);
    ::dup2(out.get(), STDOUT_FILENO);
    ::dup2(err.get(), STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  FF_CHECK(::waitpid(pid, &status, 0) == pid);
  CommandResult result;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  result.out = Content(out);
  result.err = Content(err);
  return result;
}

const std::string& PprofTool() {
  static const std::string path = [] {
    for (const char* go : {"go", "/usr/local/go/bin/go"}) {
      CommandResult built = RunCommand({go, "tool", "-n", "pprof"});
      if (built.exit_code != 0) continue;
      return built.out.substr(0, built.out.find('\n'));
    }
    return std::string();
  }();
  return path;
}

}  // namespace flamefleet
