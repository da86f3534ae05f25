// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/rewrite.h"

#include <gtest/gtest.h>

#include "tests/base/pprof/test_profiles.h"

namespace flamefleet::agent {
namespace {

using pprof::Profile;

// One sample of 7 of this type; none of a period.
Profile Served(const std::string& type, const std::string& unit) {
  Profile profile;
  profile.sample_types = {{profile.strings.Intern(type), profile.strings.Intern(unit)}};
  profile.locations.push_back({.address = 1});
  profile.sample_locations = {0};
  profile.samples = {{.first_location = 0, .location_count = 1}};
  profile.values = {7};
  return profile;
}

Profile Rewritten(const Profile& served) {
  Delta delta;
  const auto rewritten =
      RewriteProfile(pprof::EncodeToString(served), 5, std::chrono::seconds(15), &delta);
  EXPECT_TRUE(rewritten.ok() && *rewritten) << rewritten.status();
  return pprof::DecodeOrDie((**rewritten).pprof);
}

std::string NameOf(const Profile& profile, const pprof::ValueType& type) {
  return std::string(profile.strings.Get(type.type)) + "/" +
         std::string(profile.strings.Get(type.unit));
}

TEST(RewriteProfile, AProfileWithoutAPeriodGetsThatOfItsFirstType) {
  const Profile profile = Rewritten(Served("objects", "count"));
  EXPECT_EQ(NameOf(profile, profile.period_type), "objects/count");
  EXPECT_EQ(profile.period, 1);
  EXPECT_EQ(profile.values, std::vector<int64_t>{7});
}

TEST(RewriteProfile, APeriodThatIsThereStays) {
  Profile served = Served("cpu", "nanoseconds");
  served.period_type = {served.strings.Intern("wall"), served.strings.Intern("milliseconds")};
  served.period = 10;
  const Profile profile = Rewritten(served);
  EXPECT_EQ(NameOf(profile, profile.sample_types[0]), "cpu/nanoseconds");
  EXPECT_EQ(NameOf(profile, profile.period_type), "wall/milliseconds");
  EXPECT_EQ(profile.period, 10);
}

TEST(RewriteProfile, WhatWouldPartTheNameOfASeriesIsReplaced) {
  const Profile profile = Rewritten(Served("off-cpu:wait", "ns/op.\xc3\xbc"));
  EXPECT_EQ(NameOf(profile, profile.sample_types[0]), "off_cpu_wait/ns_op___");
  EXPECT_EQ(NameOf(profile, profile.period_type), "off_cpu_wait/ns_op___");
}

}  // namespace
}  // namespace flamefleet::agent
