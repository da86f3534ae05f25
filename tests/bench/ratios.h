// SPDX-License-Identifier: Apache-2.0
// Counts allocations, and prints the CPU time of one benchmark beside that of another of the same
// run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flamefleet::bench {

// Calls of operator new in this process until now.
uint64_t Allocations();

struct Ratio {
  std::string ours;  // names of benchmarks
  std::string theirs;
};

// Runs the benchmarks that the command line selects, then prints the ratios. For main().
int RunAndPrintRatios(int argc, char** argv, const std::vector<Ratio>& ratios);

}  // namespace flamefleet::bench
