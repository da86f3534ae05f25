// SPDX-License-Identifier: Apache-2.0
// The commands of kubectl-flamefleet. Each takes the arguments after its name and returns the exit
// code, as `kubectl diff` has them: 0 all is well, 1 the answer is that something is not, 2 there
// is no answer: a lack of rights, something that does not exist, wrong usage.
//
// Thread: main.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace flamefleet::kubectl {

inline constexpr int kNotWell = 1;
inline constexpr int kNoAnswer = 2;

// Why is a pod (not) profiled?
int StatusCommand(int count, const char* const* arguments);
// The hottest functions of a workload; its profile in a file.
int TopCommand(int count, const char* const* arguments);
int PprofCommand(int count, const char* const* arguments);
// The web UI of the store, in a browser.
int OpenCommand(int count, const char* const* arguments);
// What a shell reads, and what it asks then.
int CompletionCommand(int count, const char* const* arguments);
int CompleteCommand(int count, const char* const* arguments);

// The command that the first of the arguments names.
int RunCommand(int count, const char* const* arguments);
std::vector<std::string> CommandNames();

// Says on stderr why there is no answer; the exit code.
int Refuse(const Status& status);
// The same of a wrong command line.
int RefuseUsage(const Status& status);

// Says on stderr what the answer depends on.
void PrintNote(const std::string& note);

}  // namespace flamefleet::kubectl
