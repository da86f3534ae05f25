// SPDX-License-Identifier: Apache-2.0
// Where the debug file of a stripped program may be.
//
// Thread: any; pure. Errors: none. Source: gdb's manual, "Debugging Information in Separate Files"
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/host/mapped_file.h"

namespace flamefleet::agent {

// The debug file of a build ID that is in no folder here; null while it is not known. Must not
// wait.
using DebugFileFinder = std::function<std::shared_ptr<const MappedFile>(const std::string&)>;

// By build ID (hexadecimal); "" when it is none.
std::string DebugFileOfBuildId(const std::string& build_id);

// By the name in .gnu_debuglink, beside the program and in the folder for all of them.
std::vector<std::string> DebugFilesOfLink(const std::string& program, const std::string& link);

}  // namespace flamefleet::agent
