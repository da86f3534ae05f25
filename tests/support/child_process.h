// SPDX-License-Identifier: Apache-2.0
// ChildProcess: a program that a test starts, reads the output of and ends.
//
// Thread: one owner. Bounds: it is killed in the destructor.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/fd.h"

namespace flamefleet {

class ChildProcess {
 public:
  // Found in PATH; standard output and error can be read together.
  explicit ChildProcess(std::vector<std::string> command) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    output_.reset(ends[0]);
    UniqueFd write_end(ends[1]);
    std::vector<char*> arguments;
    for (std::string& word : command)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(write_end.get(), STDOUT_FILENO);
      ::dup2(write_end.get(), STDERR_FILENO);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
  }
  ~ChildProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // The next line of output without its end; "" at the end of the output.
  std::string ReadLine() {
    std::string line;
    for (char c = 0; ::read(output_.get(), &c, 1) == 1 && c != '\n';)
      line += c;
    return line;
  }

  // The rest of the line that begins with `start`; lines before it are thrown away.
  std::string AwaitLine(const std::string& start) {
    for (std::string line = ReadLine(); !line.empty(); line = ReadLine()) {
      if (line.compare(0, start.size(), start) == 0) return line.substr(start.size());
    }
    ADD_FAILURE() << "no line of the child begins with '" << start << "'";
    return "";
  }

  // Waits for the end; the exit code, or minus the signal.
  int Wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  UniqueFd output_;
};

}  // namespace flamefleet
