// SPDX-License-Identifier: Apache-2.0
// flamefleet-store export: what a directory holds, as pprof files that any tool reads.
#pragma once

namespace flamefleet::store {

// `argv` follows the word export. Writes a file per series, the merge of its profiles in the range,
// and prints each file with its labels; the exit code of the program. A running store is asked by
// GET /pprof instead.
int ExportCommand(int argc, char** argv);

}  // namespace flamefleet::store
