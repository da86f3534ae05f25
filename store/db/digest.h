// SPDX-License-Identifier: Apache-2.0
// Digest: the start of the SHA-256 of a stored profile; tells equal profiles and damaged ones.
//
// Thread: any.
#pragma once

#include <openssl/sha.h>

#include <array>
#include <string>
#include <string_view>

namespace flamefleet::store {

constexpr size_t kDigestBytes = 16;

inline std::string Digest(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> full{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), full.data());
  return {full.begin(), full.begin() + kDigestBytes};
}

}  // namespace flamefleet::store
