// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace flamefleet {
namespace {

std::string ZlibGzip(const std::string& text) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

TEST(Gzip, WhatZlibWroteIsReadBack) {
  for (const size_t size : {0UL, 1UL, 1000UL, 1000000UL}) {
    const std::string text(size, 'a');
    EXPECT_EQ(*GunzipBounded(ZlibGzip(text), size), text);
  }
}

TEST(Gzip, SeveralMembersAreOneStream) {
  EXPECT_EQ(*GunzipBounded(ZlibGzip("one ") + ZlibGzip("two"), 100), "one two");
}

TEST(Gzip, ABombCostsNoMoreThanTheBound) {
  const std::string bomb = ZlibGzip(std::string(64 << 20, '\0'));
  ASSERT_LT(bomb.size(), 100'000U);
  EXPECT_EQ(GunzipBounded(bomb, 1 << 20).status().code(), StatusCode::kResourceExhausted);
}

TEST(Gzip, DamageTruncationAndTrailingBytesAreInvalid) {
  const std::string good = ZlibGzip("some text that is long enough to be worth compressing");
  std::string damaged = good;
  damaged[good.size() / 2] = static_cast<char>(damaged[good.size() / 2] ^ 0x55);
  for (const std::string& bad : {damaged, good.substr(0, good.size() - 3), good + "tail",
                                 std::string("text"), std::string()}) {
    EXPECT_EQ(GunzipBounded(bad, 1 << 20).status().code(), StatusCode::kInvalidArgument);
  }
}

TEST(Gzip, WhatIsCompressedIsReadBack) {
  for (const size_t size : {0UL, 1UL, 1000UL, 1000000UL}) {
    std::string text(size, 'a');
    for (size_t i = 0; i < size; ++i)
      text[i] = static_cast<char>(i * i);
    const Result<std::string> zipped = Gzip(text);
    ASSERT_TRUE(zipped.ok());
    EXPECT_TRUE(IsGzip(*zipped));
    EXPECT_EQ(*GunzipBounded(*zipped, size), text);
  }
}

}  // namespace
}  // namespace flamefleet
