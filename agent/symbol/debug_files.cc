// SPDX-License-Identifier: Apache-2.0
#include "agent/symbol/debug_files.h"

namespace flamefleet::agent {
namespace {

constexpr char kDebugFolder[] = "/usr/lib/debug";

}  // namespace

std::string DebugFileOfBuildId(const std::string& build_id) {
  constexpr size_t kFolderDigits = 2;
  if (build_id.size() <= kFolderDigits) return {};
  return std::string(kDebugFolder) + "/.build-id/" + build_id.substr(0, kFolderDigits) + "/" +
         build_id.substr(kFolderDigits) + ".debug";
}

std::vector<std::string> DebugFilesOfLink(const std::string& program, const std::string& link) {
  const size_t slash = program.rfind('/');
  if (link.empty() || slash == std::string::npos) return {};
  const std::string folder = program.substr(0, slash + 1);
  return {folder + link, folder + ".debug/" + link, kDebugFolder + folder + link};
}

}  // namespace flamefleet::agent
