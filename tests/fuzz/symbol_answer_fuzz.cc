// SPDX-License-Identifier: Apache-2.0
// What the agent makes of a parsing child that is in the hands of a file.
#include <cstddef>
#include <cstdint>

#include "agent/symbol/symbol_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  const Result<ProgramSymbols> program = DecodeSymbols({reinterpret_cast<const char*>(data), size});
  if (!program.ok()) return 0;
  for (uint64_t offset = 0; offset < 1 << 16; offset += 97) {
    const auto function = program->table.Find(program->AddressOfOffset(offset).value_or(offset));
    if (function && function->name) program->table.ReadName({}, *function->name).IgnoreError();
  }
  return 0;
}
