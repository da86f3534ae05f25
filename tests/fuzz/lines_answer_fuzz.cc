// SPDX-License-Identifier: Apache-2.0
// What the agent makes of lines from a parsing child that is in the hands of a file.
#include <cstddef>
#include <cstdint>

#include "agent/symbol/line_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  const Result<SourceLines> lines = DecodeLines({reinterpret_cast<const char*>(data), size}, 2);
  if (!lines.ok()) return 0;
  for (const SourceLines::Address& address : lines->addresses) {
    for (uint32_t i = 0; i < address.count; ++i) {
      const SourceLines::Frame& frame = lines->frames.at(address.first + i);
      if (lines->texts.at(frame.function).size() + lines->texts.at(frame.file).size() >
          2 * kMaxLineTextBytes)
        __builtin_trap();
    }
  }
  return 0;
}
