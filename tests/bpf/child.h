// SPDX-License-Identifier: Apache-2.0
// A child process and a cgroup for it, both gone when the object is.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"

namespace flamefleet::testing {

// A cgroup of this test program, in the v1 hierarchy of pids or, where there is none, in v2. What
// it had to make is removed at the end.
class TestCgroup {
 public:
  explicit TestCgroup(const std::string& path_in_test);
  ~TestCgroup();
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;
  const std::string& directory() const { return directory_; }
  const std::string& path() const { return path_; }  // from the root of the hierarchy

 private:
  std::string path_;
  std::string directory_;
  std::vector<std::string> made_;
};

class Child {
 public:
  // Runs a program, inside `cgroup` from its first instruction if that is not null, as process
  // `pid` if that is not 0 (it must be free).
  Child(std::string program, std::vector<std::string> arguments, const TestCgroup* cgroup = nullptr,
        pid_t pid = 0);
  ~Child();  // ends it and waits
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  void Say(const std::string& text);  // to its standard input
  void Wait();                        // until it ends by itself

 private:
  pid_t pid_ = -1;
  UniqueFd input_;
};

class Burner : public Child {
 public:
  explicit Burner(std::vector<std::string> arguments, const TestCgroup* cgroup = nullptr);
};

}  // namespace flamefleet::testing
