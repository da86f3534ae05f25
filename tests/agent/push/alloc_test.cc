// SPDX-License-Identifier: Apache-2.0
// Counts every operator new of the program.
#include <gtest/gtest.h>

#include "agent/compress/gzip_compressor.h"
#include "agent/push/pusher.h"
#include "agent/spool/spool.h"
#include "base/pprof/profile.h"
#include "tests/base/pprof/test_profiles.h"
#include "tests/support/allocations.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::agent {
namespace {

constexpr uint32_t kRounds = 50;
constexpr char kPodUid[] = "0aa5a3c1-0000-4000-8000-000000000001";

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

// SQLite's own memory is not in it: it has a heap of its own and takes it from malloc.
TEST(SteadyState, AProfileThatWaitsAndIsTakenAllocatesNothing) {
  const TempDir directory;
  const auto spool = Spool::Open({.directory = directory.path()});
  ASSERT_TRUE(spool.ok()) << spool.status();
  std::vector<SpooledProfile> group(
      3, {.collection = {.pod_uid = kPodUid}, .backend = "main", .body = std::string(3000, 'x')});
  SpooledProfile profile;
  EXPECT_EQ(AllocationsOf([&](uint32_t) {
              ASSERT_TRUE((*spool)->Append(group).ok());
              for (size_t i = 0; i < group.size(); ++i) {
                const Result<bool> taken = (*spool)->TakeOldest("main", &profile);
                ASSERT_TRUE(taken.ok() && *taken && (*spool)->Remove(profile).ok());
              }
            }),
            0U);
}

// Its backend is held, so that all of it is ours: no HTTP. What two profiles that are on their way
// need comes once, and every ten seconds the writer looks for what is too old.
TEST(SteadyState, AProfileOnItsWayIntoTheSpoolAllocatesNothing) {
  auto opened = Spool::Open({});
  ASSERT_TRUE(opened.ok()) << opened.status();
  const Spool* const spool = opened->get();
  Metrics metrics;
  Pusher pusher({}, *std::move(opened), &metrics, nullptr);
  ASSERT_TRUE(
      pusher.SetBackends({{.name = "main", .endpoint = "http://127.0.0.1:1", .hold = true}}).ok());
  const FinishedProfile profile = {.collection = {.pod_uid = kPodUid},
                                   .backend = "main",
                                   .labels = {{"namespace", "production"},
                                              {"node", "node-1"},
                                              {"pod", "shop-7d9f8b6c5d-abcde"},
                                              {"service_name", "shop"}},
                                   .pprof = std::string(3000, 'x')};
  int64_t pushed = 0;
  EXPECT_LE(AllocationsOf([&](uint32_t) {
              pusher.Push(profile);
              ++pushed;
              ASSERT_TRUE(WaitUntil([&] { return spool->Profiles() == pushed; }));
            }),
            kRounds / 2);
}

}  // namespace
}  // namespace flamefleet::agent
