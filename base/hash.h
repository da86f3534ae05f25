// SPDX-License-Identifier: Apache-2.0
// Hashes with a random seed, of what strangers choose: who does not know the seed cannot choose
// values that collide, which would make every look-up a walk through all of them.
//
// Thread: any; values. Source: one round of multiply-and-fold per 8 bytes, as in wyhash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace flamefleet {

inline uint64_t RandomHashSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

inline uint64_t MixHash(uint64_t hash, uint64_t value) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  const auto product = static_cast<unsigned __int128>(hash ^ value) * kOdd;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t HashText(uint64_t seed, std::string_view text) {
  uint64_t hash = MixHash(seed, text.size());
  while (!text.empty()) {
    const size_t size = text.size() < sizeof(uint64_t) ? text.size() : sizeof(uint64_t);
    uint64_t word = 0;
    std::memcpy(&word, text.data(), size);
    hash = MixHash(hash, word + seed);
    text.remove_prefix(size);
  }
  return hash;
}

// For unordered containers whose keys are numbers; each container has its own seed.
class SeededHash {
 public:
  size_t operator()(uint64_t key) const { return MixHash(seed_, key + seed_); }

 private:
  uint64_t seed_ = RandomHashSeed();
};

}  // namespace flamefleet
