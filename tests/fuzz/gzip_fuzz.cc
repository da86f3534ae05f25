// SPDX-License-Identifier: Apache-2.0
// Any bytes as gzip: they unpack within the bound or are refused, and what was unpacked is the same
// after it was packed and unpacked again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/push/split_push.h"
#include "base/gzip.h"
#include "base/status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;  // NOLINT(google-build-using-namespace)
  constexpr size_t kMaxBytes = 1 << 20;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  FF_CHECK(agent::UncompressedBytes(bytes) >= 0);
  const auto plain = GunzipBounded(bytes, kMaxBytes);
  if (!plain.ok()) return 0;
  FF_CHECK(plain->size() <= kMaxBytes);
  const auto packed = Gzip(*plain);
  FF_CHECK(packed.ok() && *GunzipBounded(*packed, kMaxBytes) == *plain);
  FF_CHECK(agent::UncompressedBytes(*packed) == static_cast<int64_t>(plain->size()));
  return 0;
}
