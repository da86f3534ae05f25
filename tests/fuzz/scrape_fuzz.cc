// SPDX-License-Identifier: Apache-2.0
// Any two profiles that one pod serves one after the other (four bytes say where the second
// begins): what is sent is a valid profile, and what is kept of the last fits in its room.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "agent/scrape/rewrite.h"
#include "base/pprof/profile.h"
#include "base/status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::agent;  // NOLINT(google-build-using-namespace)
  uint32_t split = 0;
  if (size < sizeof split) return 0;
  std::memcpy(&split, data, sizeof split);
  const std::string_view all(reinterpret_cast<const char*>(data) + sizeof split,
                             size - sizeof split);
  const size_t first = std::min<size_t>(split, all.size());
  const ScrapeLimits limits = {.raw = 1 << 20, .decoded = 1 << 20, .past = 4 << 10};
  DeltaRoom room(limits.past);
  {
    Delta delta(&room);
    int64_t time_ns = 1;
    for (const std::string_view body : {all.substr(0, first), all.substr(first), all}) {
      const auto rewritten =
          RewriteProfile(body, time_ns++, std::chrono::seconds(15), &delta, limits);
      if (!rewritten.ok() || !*rewritten) continue;
      pprof::Profile sent;
      FF_CHECK(pprof::Decode((**rewritten).pprof, {}, &sent).ok());
      FF_CHECK(!sent.samples.empty() && sent.period != 0);
    }
  }
  FF_CHECK(room.Take(static_cast<int64_t>(limits.past)));  // all of it was given back
  return 0;
}
