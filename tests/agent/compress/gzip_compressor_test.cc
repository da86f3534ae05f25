// SPDX-License-Identifier: Apache-2.0
// zlib is the judge of what igzip writes.
#include "agent/compress/gzip_compressor.h"

#include <gtest/gtest.h>

#include <random>

#include "base/gzip.h"

namespace flamefleet::agent {
namespace {

std::string Random(size_t size) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& c : text)
    c = static_cast<char>(random());
  return text;
}

std::string Repetitive(size_t size) {
  std::string text;
  while (text.size() < size)
    text += "frame " + std::to_string(text.size() % 97) + ";";
  return text;
}

TEST(GzipCompressor, IsReadByZlibWhateverTheInput) {
  GzipCompressor compressor;
  std::string out;
  for (const std::string& input : {std::string(), std::string("x"), Repetitive(100), Random(100),
                                   Repetitive(3 << 20), Random(3 << 20), Repetitive(1000)}) {
    compressor.Compress(input, &out);
    ASSERT_TRUE(IsGzip(out));
    const Result<std::string> back = GunzipBounded(out, 4 << 20);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, input);
  }
}

TEST(GzipCompressor, GivesTheSameBytesForTheSameInput) {
  GzipCompressor used;
  std::string first;
  used.Compress(Random(5000), &first);
  used.Compress(Repetitive(5000), &first);
  GzipCompressor fresh;
  std::string second;
  fresh.Compress(Repetitive(5000), &second);
  EXPECT_EQ(first, second);
  EXPECT_EQ(first.substr(4, 4), std::string(4, '\0')) << "the header has a time";
}

TEST(GzipCompressor, MakesRepetitiveInputSmaller) {
  GzipCompressor compressor;
  std::string out;
  compressor.Compress(Repetitive(1 << 20), &out);
  EXPECT_LT(out.size(), (1u << 20) / 10);
}

}  // namespace
}  // namespace flamefleet::agent
