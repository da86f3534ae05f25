// SPDX-License-Identifier: Apache-2.0
// The commands of flamefleet-operator. Each takes the arguments after its
// name and returns the exit code: 0, 1 when it could not do its work, 2 for wrong usage.
//
// Thread: main, before any other.
#pragma once

#include "base/status.h"

namespace flamefleet {

inline constexpr int kUsageError = 2;

// Runs the operator until SIGTERM or SIGINT.
int RunCommand(int count, const char* const* arguments);
// Creates the AgentPools and ProfilingBackends of a folder that are not there.
int CreateMissingCommand(int count, const char* const* arguments);
// Says what the operator would make of manifests, without a cluster.
int RenderCommand(int count, const char* const* arguments);

// Says on stderr what is wrong with the command line; the exit code.
int RefuseUsage(const Status& status);

}  // namespace flamefleet
