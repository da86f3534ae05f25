// SPDX-License-Identifier: Apache-2.0
// Any query text: refused, or a selector that can be asked.
#include <cstddef>
#include <cstdint>
#include <string>

#include "store/match/selector.h"
#include "store/match/time_range.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet::store;  // NOLINT(google-build-using-namespace)
  const std::string text(reinterpret_cast<const char*>(data), size);
  const flamefleet::Result<Selector> selector = ParseSelector(text);
  if (selector.ok()) {
    selector->Matches({});
    selector->Matches({{"__name__", "process_cpu"}, {"service_name", text}});
  }
  ParseTimeRange(text, "", 1).status().IgnoreError();
  return 0;
}
