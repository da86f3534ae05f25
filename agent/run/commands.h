// SPDX-License-Identifier: Apache-2.0
// The subcommands of flamefleet-agent. Each reads its own flags (the arguments after its name) and
// returns the exit code: 0, 1 when it could not do its work, 2 for wrong usage.
//
// Thread: main, with the termination signals blocked (base/thread.h).
#pragma once

#include <string>

#include "base/flags.h"

namespace flamefleet::agent {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

// The agent of a node of a cluster, until SIGTERM or SIGINT.
int RunCommand(int count, const char* const* arguments);

// Profiles this host without Kubernetes, for --duration or until SIGINT.
int LocalCommand(int count, const char* const* arguments);

// Says what is wrong and where to read on; returns kExitUsage.
int UsageError(const Status& status, const std::string& command);

}  // namespace flamefleet::agent
