// SPDX-License-Identifier: Apache-2.0
// Counts every operator new of the program.
#include <gtest/gtest.h>

#include "agent/compress/gzip_compressor.h"
#include "agent/push/push_request.h"
#include "agent/spool/spool.h"
#include "base/pprof/profile.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/support/allocations.h"
#include "tests/support/temp_dir.h"

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

// SQLite's own memory is not in it: it has a heap of its own and takes it from malloc.
TEST(SteadyState, AProfileThatWaitsIsSixAllocationsHoweverManyDo) {
  const TempDir directory;
  const auto spool = Spool::Open({.directory = directory.path()});
  ASSERT_TRUE(spool.ok()) << spool.status();
  const std::string body(3000, 'x');
  std::vector<SpooledProfile> group;
  // The body and the pod's long name, as it comes and as it is handed out; and who has it.
  EXPECT_LE(AllocationsOf([&](uint32_t) {
              group.clear();
              group.push_back({.collection = {.pod_uid = "0aa5a3c1-0000-4000-8000-000000000001"},
                               .backend = "main",
                               .body = body});
              ASSERT_TRUE((*spool)->Append(group).ok());
              const auto taken = (*spool)->TakeOldest("main");
              ASSERT_TRUE(taken.ok() && *taken && (*spool)->Remove(**taken).ok());
            }),
            6 * kRounds);
}

}  // namespace
}  // namespace flamefleet::agent
