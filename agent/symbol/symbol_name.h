// SPDX-License-Identifier: Apache-2.0
// SymbolName: what a function is called. Thread: any; a value.
#pragma once

#include <string>

namespace flamefleet::agent {

struct SymbolName {
  std::string name;         // demangled; UTF-8
  std::string system_name;  // as in the file; UTF-8
};

}  // namespace flamefleet::agent
