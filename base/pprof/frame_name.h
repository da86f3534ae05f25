// SPDX-License-Identifier: Apache-2.0
// How a frame is called in tables and graphs.
//
// Thread: any.
#pragma once

#include <string>

#include "base/pprof/profile.h"

namespace flamefleet::pprof {

// File name of the binary that a location is in, without folders; empty when unknown.
inline std::string ModuleOf(const Profile& profile, const Location& location) {
  if (location.mapping == kNone) return "";
  const std::string_view file = profile.strings.Get(profile.mappings[location.mapping].file_name);
  return std::string(file.substr(file.rfind('/') + 1));
}

// Calls `visit(std::string)` for each frame of a location, innermost first: the function's name;
// "[file]" for a location of a mapping without symbols, else "<unknown>".
template <typename Visit>
void ForEachFrameName(const Profile& profile, const Location& location, const Visit& visit) {
  if (location.line_count == 0) {
    const std::string module = ModuleOf(profile, location);
    visit(module.empty() ? "<unknown>" : "[" + module + "]");
  }
  for (uint32_t i = 0; i < location.line_count; ++i) {
    const Line& line = profile.lines[location.first_line + i];
    visit(std::string(profile.strings.Get(profile.functions[line.function].name)));
  }
}

}  // namespace flamefleet::pprof
