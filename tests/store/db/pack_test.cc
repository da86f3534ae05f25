// SPDX-License-Identifier: Apache-2.0
#include "store/db/pack.h"

#include <gtest/gtest.h>

#include <random>

#include "base/zstd.h"

namespace flamefleet::store {
namespace {

Pack SomePack(uint32_t seed) {
  std::mt19937_64 random(seed);
  Pack pack{.width = 1 + random() % 4, .heads = {"one", "", "three"}};
  for (size_t i = 0; i < 1 + random() % 50; ++i) {
    PackedProfile& profile = pack.profiles.emplace_back();
    profile.time_ns = static_cast<int64_t>(random());
    profile.has_time = random() % 2 == 0;
    profile.duration_ns = static_cast<int64_t>(random());
    profile.head = static_cast<uint32_t>(random() % pack.heads.size());
    for (uint32_t stack = 0; random() % 20 != 0; stack += 1 + static_cast<uint32_t>(random() % 9)) {
      profile.stacks.push_back(stack);
      for (size_t type = 0; type < pack.width; ++type) {
        const bool small = seed % 2 == 0;
        profile.values.push_back(small ? static_cast<int64_t>(random() % 100) * 10'000'000
                                       : static_cast<int64_t>(random()));
      }
    }
  }
  return pack;
}

void ExpectEqual(const Pack& got, const Pack& want) {
  EXPECT_EQ(got.width, want.width);
  EXPECT_EQ(got.heads, want.heads);
  ASSERT_EQ(got.profiles.size(), want.profiles.size());
  for (size_t i = 0; i < want.profiles.size(); ++i) {
    EXPECT_EQ(got.profiles[i].time_ns, want.profiles[i].time_ns);
    EXPECT_EQ(got.profiles[i].has_time, want.profiles[i].has_time);
    EXPECT_EQ(got.profiles[i].duration_ns, want.profiles[i].duration_ns);
    EXPECT_EQ(got.profiles[i].head, want.profiles[i].head);
    EXPECT_EQ(got.profiles[i].stacks, want.profiles[i].stacks);
    EXPECT_EQ(got.profiles[i].values, want.profiles[i].values);
  }
}

TEST(Pack, WhatIsEncodedIsDecoded) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Pack pack = SomePack(seed);
    const Result<Pack> decoded = DecodePack(EncodePack(pack));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ExpectEqual(*decoded, pack);
  }
}

TEST(Pack, ExtremeValuesHaveADivisor) {
  Pack pack{.width = 2, .heads = {""}, .profiles = {{.stacks = {0, UINT32_MAX}}}};
  pack.profiles[0].values = {INT64_MIN, 0, INT64_MIN, INT64_MAX};
  const Result<Pack> decoded = DecodePack(EncodePack(pack));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ExpectEqual(*decoded, pack);
}

TEST(Pack, AChangedByteIsDataLoss) {
  const std::string good = EncodePack(SomePack(1));
  for (size_t i = 0; i < good.size(); i += 7) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    EXPECT_EQ(DecodePack(bad).status().code(), StatusCode::kDataLoss) << i;
  }
  EXPECT_EQ(DecodePack("").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(DecodePack(good.substr(0, good.size() / 2)).status().code(), StatusCode::kDataLoss);
}

TEST(Pack, AnyBytesInAGoodFrameAreReadOrRefused) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random() % 60, '\0');
    for (char& c : bytes)
      c = static_cast<char>(random() % 4 == 0 ? random() : random() % 4);
    const Result<Pack> pack = DecodePack(ZstdCompress(bytes, 1));
    if (!pack.ok()) continue;
    for (const PackedProfile& profile : pack->profiles) {
      EXPECT_LT(profile.head, pack->heads.size());
      EXPECT_EQ(profile.values.size(), profile.stacks.size() * pack->width);
    }
  }
}

TEST(Pack, SumIsThatOfEachStackAndType) {
  Pack pack{.width = 2, .heads = {"a", "b"}};
  pack.profiles = {
      {.time_ns = 5, .duration_ns = 10, .head = 0, .stacks = {0, 2}, .values = {1, 2, 10, 20}},
      {.time_ns = 6,
       .has_time = true,
       .duration_ns = 10,
       .head = 1,
       .stacks = {2, 3},
       .values = {3, 4, 30, 40}}};
  Pack want{.width = 2, .heads = {"a", "b"}};
  want.profiles = {{.time_ns = 6,
                    .has_time = true,
                    .duration_ns = 20,
                    .stacks = {0, 2, 3},
                    .values = {1, 5, 4, 10, 50, 40}}};
  ExpectEqual(SumOf(pack), want);
}

}  // namespace
}  // namespace flamefleet::store
