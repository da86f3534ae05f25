// SPDX-License-Identifier: Apache-2.0
#include "store/check_command.h"

#include <cstdio>
#include <filesystem>
#include <set>

#include "store/db/check.h"
#include "store/db/day.h"

namespace flamefleet::store {

int CheckDirectory(const std::string& directory) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (Day::NumberOfFileName(name) >= 0) names.insert(name);
  }
  if (error) {
    std::fprintf(stderr, "flamefleet-store: list %s: %s\n", directory.c_str(),
                 error.message().c_str());
    return 1;
  }
  int exit_code = 0;
  for (const std::string& name : names) {
    const Result<DayReport> report = CheckDay(directory + "/" + name);
    if (!report.ok()) {
      std::printf("%s: %s\n", name.c_str(), ErrorMessage(report.status()).c_str());
      exit_code = 1;
      continue;
    }
    std::printf("%s: %zu series, %zu profiles, %zu of them packed: %s\n", name.c_str(),
                report->series, report->profiles, report->packed,
                report->problems.empty() ? "whole" : "damaged");
    for (const std::string& problem : report->problems) {
      std::printf("  %s\n", problem.c_str());
      exit_code = 1;
    }
  }
  if (names.empty()) std::printf("%s: no days\n", directory.c_str());
  return exit_code;
}

}  // namespace flamefleet::store
