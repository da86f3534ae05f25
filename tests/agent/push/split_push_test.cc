// SPDX-License-Identifier: Apache-2.0
#include "agent/push/split_push.h"

#include <gtest/gtest.h>

#include <set>

#include "base/fd.h"
#include "base/gzip.h"
#include "base/pprof/profile.h"
#include "proto/pyroscope/push.pb.h"

namespace flamefleet::agent {
namespace {

pprof::Profile ProfileOf(const SpooledProfile& push) {
  pyroscope::PushRequest request;
  EXPECT_TRUE(request.ParseFromString(push.body));
  pprof::Profile profile;
  EXPECT_TRUE(pprof::Decode(request.series(0).samples(0).raw_profile(), {}, &profile).ok());
  return profile;
}

SpooledProfile PushOf(const std::string& file) {
  pyroscope::PushRequest request;
  auto* const series = request.add_series();
  auto* const label = series->add_labels();
  label->set_name("service_name");
  label->set_value("shop");
  series->add_samples()->set_raw_profile(*ReadFile("tests/data/pprof/" + file, 1 << 20));
  SpooledProfile push{.backend = "main", .time_ns = 1'000'000'000, .errors = 2};
  push.body = request.SerializeAsString();
  return push;
}

TEST(SplitPush, TheHalvesHaveAllSamplesBetweenThemAndTimesOfTheirOwn) {
  const SpooledProfile whole = PushOf("real_cpu.pb.gz");
  const pprof::Profile before = ProfileOf(whole);
  const auto parts = SplitPush(whole);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2U);
  int64_t total = 0;
  for (const SpooledProfile& part : *parts) {
    EXPECT_LT(part.raw_bytes,
              UncompressedBytes(*ReadFile("tests/data/pprof/real_cpu.pb.gz", 1 << 20)));
    EXPECT_EQ(part.errors, 0);
    total += pprof::TotalValue(ProfileOf(part), 0);
  }
  EXPECT_EQ(total, pprof::TotalValue(before, 0));
  EXPECT_EQ(ProfileOf((*parts)[0]).time_ns, before.time_ns);
  EXPECT_NE(ProfileOf((*parts)[1]).time_ns, before.time_ns);
}

TEST(SplitPush, PartsOfPartsNeverShareATime) {
  std::vector<SpooledProfile> parts = {PushOf("real_cpu.pb.gz")};
  std::set<int64_t> times;
  while (!parts.empty()) {
    const SpooledProfile part = std::move(parts.back());
    parts.pop_back();
    auto halves = SplitPush(part);
    if (halves.ok()) {
      for (SpooledProfile& half : *halves)
        parts.push_back(std::move(half));
    } else {
      EXPECT_EQ(halves.status().code(), StatusCode::kResourceExhausted);
      EXPECT_TRUE(times.insert(ProfileOf(part).time_ns).second);
    }
  }
  EXPECT_GT(times.size(), 4U);
}

TEST(SplitPush, WhatIsNoPushIsAnError) {
  EXPECT_EQ(SplitPush({.body = "x"}).status().code(), StatusCode::kInvalidArgument);
}

TEST(UncompressedBytes, IsWhatGunzipGives) {
  const std::string packed = *ReadFile("tests/data/pprof/real_allocs.pb.gz", 1 << 20);
  EXPECT_EQ(UncompressedBytes(packed),
            static_cast<int64_t>(GunzipBounded(packed, 1 << 24)->size()));
  EXPECT_EQ(UncompressedBytes("plain"), 5);
}

}  // namespace
}  // namespace flamefleet::agent
