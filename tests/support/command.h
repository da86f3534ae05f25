// SPDX-License-Identifier: Apache-2.0
// Runs a program and takes its output: for oracles such as `go tool pprof` and promtool. Thread:
// any.
#pragma once

#include <string>
#include <vector>

namespace flamefleet {

struct CommandResult {
  int exit_code = -1;  // -1: not started or killed by a signal
  std::string out;
  std::string err;
};

// argv[0] is looked up in PATH. Waits for the end; `input` is its stdin.
CommandResult RunCommand(const std::vector<std::string>& argv, const std::string& input = "");

// The path of google/pprof as Go ships it (`go tool pprof`), built by the first call; empty when
// there is no Go.
const std::string& PprofTool();

}  // namespace flamefleet
