// SPDX-License-Identifier: Apache-2.0
// The form in which exec and posix_spawn take arguments and environments. Thread: any.
#pragma once

#include <string>
#include <vector>

namespace flamefleet {

// Pointers to the texts, then a null. Valid as long as the texts, which must not change.
inline std::vector<char*> ArgvOf(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace flamefleet
