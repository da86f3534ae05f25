// SPDX-License-Identifier: Apache-2.0
#include "kubectl/commands.h"

#include <cstdio>

namespace flamefleet::kubectl {

int Refuse(const Status& status) {
  std::fprintf(stderr, "error: %s\n", ErrorMessage(status).c_str());
  return kNoAnswer;
}

int RefuseUsage(const Status& status) {
  std::fprintf(stderr, "error: %s\nTry --help.\n", ErrorMessage(status).c_str());
  return kNoAnswer;
}

void PrintNote(const std::string& note) {
  std::fprintf(stderr, "note: %s\n", note.c_str());
}

}  // namespace flamefleet::kubectl
