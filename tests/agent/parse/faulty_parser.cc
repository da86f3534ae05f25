// SPDX-License-Identifier: Apache-2.0
// A parsing child whose parser has every fault: the first byte of a file says which.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "agent/parse/serve.h"

namespace {

using flamefleet::Result;

Result<std::string> Answer(std::span<const int> files, std::string_view arguments) {
  char fault = 0;
  if (files.size() != 1 || ::pread(files[0], &fault, 1, 0) != 1)
    return flamefleet::InvalidArgumentError("no fault");
  switch (fault) {
    case 'e':  // echo
      return std::string(arguments);
    case 'c':  // crash
      __builtin_trap();
    case 'h':  // hang
      for (;;)
        asm volatile("");
    case 'm':  // memory
      return std::string(size_t{1} << 40, 'm');
    case 'a':  // answer
      return std::string(flamefleet::agent::kMaxParseAnswerBytes + 1, 'a');
    case 'x':  // exit
      ::_exit(0);
    default:
      break;
  }
  return flamefleet::DataLossError("strange fault");
}

}  // namespace

int main() {
  using flamefleet::agent::ParseKind;
  return flamefleet::agent::ServeParser(STDIN_FILENO, {{ParseKind::kSymbols, Answer},
                                                       {ParseKind::kUnwindInfo, Answer},
                                                       {ParseKind::kLines, Answer}});
}
