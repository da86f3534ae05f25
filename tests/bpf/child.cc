// SPDX-License-Identifier: Apache-2.0
#include "tests/bpf/child.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace flamefleet::testing {
namespace {

std::string CgroupMount() {
  struct stat info {};
  return ::stat("/sys/fs/cgroup/pids/cgroup.procs", &info) == 0 ? "/sys/fs/cgroup/pids"
                                                                : "/sys/fs/cgroup";
}

// fork(); the child gets that PID if it is not 0.
pid_t Fork(pid_t pid) {
  if (pid == 0) return ::fork();
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<uintptr_t>(&pid);
  arguments.set_tid_size = 1;
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

}  // namespace

TestCgroup::TestCgroup(const std::string& path_in_test)
    : path_("/ff-test-" + std::to_string(::getpid()) + "/" + path_in_test),
      directory_(CgroupMount() + path_) {
  const std::string path = path_.substr(1);
  std::string directory = CgroupMount();
  for (size_t at = 0; at != std::string::npos;) {
    const size_t next = path.find('/', at);
    directory += "/" + path.substr(at, next == std::string::npos ? next : next - at);
    if (::mkdir(directory.c_str(), 0755) == 0)
      made_.push_back(directory);
    else
      FF_CHECK(errno == EEXIST);
    at = next == std::string::npos ? next : next + 1;
  }
}

TestCgroup::~TestCgroup() {
  while (!made_.empty()) {
    ::rmdir(made_.back().c_str());
    made_.pop_back();
  }
}

Burner::Burner(std::vector<std::string> arguments, const TestCgroup* cgroup)
    : Child(FF_BURNER, std::move(arguments), cgroup) {}

Child::Child(std::string program, std::vector<std::string> arguments, const TestCgroup* cgroup,
             pid_t pid) {
  int ends[2];
  FF_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  input_.reset(ends[1]);
  const UniqueFd read_end(ends[0]);
  std::vector<char*> argv;
  argv.push_back(program.data());
  for (std::string& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string procs = cgroup == nullptr ? "" : cgroup->directory() + "/cgroup.procs";
  pid_ = Fork(pid);
  FF_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    if (!procs.empty()) {
      const int fd = ::open(procs.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd < 0 || ::write(fd, "0", 1) != 1) ::_exit(3);
    }
    ::dup2(read_end.get(), STDIN_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
}

Child::~Child() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  Wait();
}

void Child::Say(const std::string& text) {
  FF_CHECK(::write(input_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

void Child::Wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace flamefleet::testing
