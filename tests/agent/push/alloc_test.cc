// SPDX-License-Identifier: Apache-2.0
// Counts every operator new of the program.
#include <gtest/gtest.h>

#include "agent/compress/gzip_compressor.h"
#include "agent/push/push_request.h"
#include "base/pprof/profile.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/support/allocations.h"

namespace flamefleet::agent {
namespace {

constexpr uint32_t kRounds = 50;

// Of `work` in kRounds rounds, after as many in which it got what it keeps.
template <typename Work>
size_t AllocationsOf(Work work) {
  for (uint32_t i = 0; i < kRounds; ++i)
    work(i);
  const size_t before = Allocations();
  for (uint32_t i = 0; i < kRounds; ++i)
    work(i);
  return Allocations() - before;
}

TEST(SteadyState, EncodingAndCompressionAllocateNothing) {
  pprof::Profile profile;
  std::string raw;
  std::string compressed;
  GzipCompressor compressor;
  EXPECT_EQ(AllocationsOf([&](uint32_t i) {
              pprof::FillRandomProfile(i, 300, &profile);
              raw.clear();
              pprof::Encode(profile, &raw);
              compressor.Compress(raw, &compressed);
            }),
            0U);
  EXPECT_GT(compressed.size(), 1000U);
}

TEST(SteadyState, APushIsOneAllocationWhichTheQueueOwns) {
  const FinishedProfile profile = {.labels = {{"namespace", "production"},
                                              {"node", "node-1"},
                                              {"pod", "shop-7d9f8b6c5d-abcde"},
                                              {"service_name", "shop"}},
                                   .pprof = std::string(3000, 'x')};
  std::string body;
  EXPECT_EQ(AllocationsOf([&](uint32_t) { body = EncodePushRequest(profile); }), kRounds);
}

}  // namespace
}  // namespace flamefleet::agent
