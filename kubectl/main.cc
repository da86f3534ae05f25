// SPDX-License-Identifier: Apache-2.0
// kubectl-flamefleet: `kubectl flamefleet COMMAND`, for people who use what the operator runs.
#include <cstdio>
#include <exception>
#include <string_view>

#include "base/log.h"
#include "base/standard_output.h"
#include "kubectl/commands.h"

int main(int argc, char** argv) {
  using namespace flamefleet;
  try {
    SetLogLevel(LogLevel::kError);
    const int code = kubectl::RunCommand(argc - 1, argv + 1);
    const Status written = FlushStandardOutput();
    return written.ok() ? code : kubectl::Refuse(written);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return kubectl::kNoAnswer;
  }
}
