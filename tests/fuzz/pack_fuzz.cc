// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pack whose frame is whole: what is read has the shape that it should have, and is
// read from what is written of it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "base/zstd.h"
#include "store/db/pack.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flamefleet;         // NOLINT(google-build-using-namespace)
  using namespace flamefleet::store;  // NOLINT(google-build-using-namespace)
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Result<Pack> pack = DecodePack(ZstdCompress(bytes, 1));
  if (!pack.ok()) return 0;
  for (const PackedProfile& profile : pack->profiles) {
    FF_CHECK(profile.head < pack->heads.size());
    FF_CHECK(profile.values.size() == profile.stacks.size() * pack->width);
  }
  const Result<Pack> again = DecodePack(EncodePack(*pack));
  FF_CHECK(again.ok() && again->profiles.size() == pack->profiles.size());
  for (size_t i = 0; i < pack->profiles.size(); ++i) {
    FF_CHECK(again->profiles[i].stacks == pack->profiles[i].stacks);
    FF_CHECK(again->profiles[i].values == pack->profiles[i].values);
  }
  return 0;
}
