// SPDX-License-Identifier: Apache-2.0
// flamefleet-parse: the agent's unprivileged child that reads files of containers; the agent starts
// it with one end of a socket pair as its standard input. See agent/parse/parser_process.h.
#include <unistd.h>

#include <cstdio>

#include "agent/parse/serve.h"
#include "agent/stack/unwind_request.h"
#include "agent/symbol/jit_dump.h"
#include "agent/symbol/line_request.h"
#include "agent/symbol/perf_map.h"
#include "agent/symbol/symbol_request.h"

int main(int argc, char**) {
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  if (argc > 1 || ::isatty(STDIN_FILENO) != 0) {
    std::fputs("flamefleet-parse is started by flamefleet-agent and of no use by itself\n", stderr);
    return 2;
  }
  return ServeParser(STDIN_FILENO, {{ParseKind::kSymbols, AnswerSymbols},
                                    {ParseKind::kLines, AnswerLines},
                                    {ParseKind::kPerfMap, AnswerPerfMap},
                                    {ParseKind::kJitDump, AnswerJitDump},
                                    {ParseKind::kUnwindInfo, AnswerUnwindInfo},
                                    {ParseKind::kUnwindTable, AnswerUnwindTable}});
}
