// SPDX-License-Identifier: Apache-2.0
#include "agent/scrape/delta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flamefleet::agent {
namespace {

using ::testing::ElementsAre;

// A memory profile: for each stack (an address) alloc_objects and inuse_objects.
struct Row {
  uint64_t address;
  int64_t allocated;
  int64_t in_use;
};

pprof::Profile MemoryProfile(const std::vector<Row>& rows,
                             const std::string& first_type = "alloc_objects") {
  pprof::Profile profile;
  const uint32_t count = profile.strings.Intern("count");
  profile.sample_types = {{profile.strings.Intern(first_type), count},
                          {profile.strings.Intern("inuse_objects"), count}};
  for (const Row& row : rows) {
    const auto index = static_cast<uint32_t>(profile.locations.size());
    profile.locations.push_back({.address = row.address});
    profile.sample_locations.push_back(index);
    profile.samples.push_back({.first_location = index, .location_count = 1});
    profile.values.insert(profile.values.end(), {row.allocated, row.in_use});
  }
  return profile;
}

std::vector<int64_t> Apply(Delta* delta, pprof::Profile profile) {
  EXPECT_TRUE(delta->Apply(&profile).ok());
  return profile.values;
}

TEST(Delta, TheFirstProfileHasOnlyWhatIsInUse) {
  Delta delta;
  EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 60, 5}, {2, 10, 0}})), ElementsAre(0, 5, 0, 0));
}

TEST(Delta, LaterProfilesHaveTheDifference) {
  Delta delta;
  Apply(&delta, MemoryProfile({{1, 60, 5}}));
  EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 180, 6}})), ElementsAre(120, 6));
  EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 180, 7}})), ElementsAre(0, 7));
}

TEST(Delta, AStackThatIsNewCountsFromZero) {
  Delta delta;
  Apply(&delta, MemoryProfile({{1, 60, 0}}));
  EXPECT_THAT(Apply(&delta, MemoryProfile({{2, 7, 0}, {1, 61, 0}})), ElementsAre(7, 0, 1, 0));
}

TEST(Delta, AValueThatWentDownStartsAgain) {
  Delta delta;
  Apply(&delta, MemoryProfile({{1, 60, 0}, {2, 5, 0}}));
  EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 70, 1}, {2, 4, 1}})), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 71, 1}, {2, 5, 1}})), ElementsAre(1, 1, 1, 1));
}

TEST(Delta, AStackThatVanishedStartsAgain) {
  Delta delta;
  Apply(&delta, MemoryProfile({{1, 60, 0}, {2, 5, 0}}));
  EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 70, 0}})), ElementsAre(0, 0));
}

TEST(Delta, TwoSamplesOfOneStackAreOneSum) {
  Delta delta;
  Apply(&delta, MemoryProfile({{1, 10, 0}, {1, 20, 0}}));
  EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 15, 1}, {1, 20, 1}})), ElementsAre(5, 1, 0, 1));
}

// Hashing the name for each location would be 400 GB of text.
TEST(Delta, ALongNameIsHashedOnceHoweverManyLocationsHaveIt) {
  constexpr uint32_t kLocations = 200'000;
  std::vector<Row> rows;
  for (uint32_t i = 0; i < kLocations; ++i)
    rows.push_back({i + 1, 2, 1});
  pprof::Profile profile = MemoryProfile(rows);
  profile.functions.push_back({.name = profile.strings.Intern(std::string(1 << 20, 'n'))});
  for (uint32_t i = 0; i < kLocations; ++i) {
    profile.locations[i].first_line = i;
    profile.locations[i].line_count = 1;
    profile.lines.push_back({.function = 0, .line = 1});
  }
  Delta delta;
  ASSERT_TRUE(delta.Apply(&profile).ok());
  profile.values[0] = 5;
  for (uint32_t i = 1; i < kLocations; ++i)
    profile.values[size_t{2} * i] = 2;
  EXPECT_EQ(Apply(&delta, std::move(profile))[0], 3);
}

TEST(Delta, StacksThatOnlyANameTellsApartAreTwo) {
  const auto profile = [](int64_t first, int64_t second) {
    pprof::Profile made = MemoryProfile({{7, first, 0}, {7, second, 0}});
    for (uint32_t i = 0; i < 2; ++i) {
      made.functions.push_back({.name = made.strings.Intern(i == 0 ? "first" : "second")});
      made.locations[i].first_line = i;
      made.locations[i].line_count = 1;
      made.lines.push_back({.function = i});
    }
    return made;
  };
  Delta delta;
  Apply(&delta, profile(1, 2));
  EXPECT_THAT(Apply(&delta, profile(11, 5)), ElementsAre(10, 0, 3, 0));
}

TEST(Delta, AnotherSetOfCumulativeTypesStartsAgain) {
  Delta delta;
  pprof::Profile two = MemoryProfile({{1, 60, 5}});
  two.sample_types[1].type = two.strings.Intern("alloc_space");
  Apply(&delta, std::move(two));
  EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 70, 5}})), ElementsAre(0, 5));
  EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 71, 5}})), ElementsAre(1, 5));
}

TEST(Delta, WhatHasNoRoomIsRefusedAndForgetsNothing) {
  DeltaRoom room(60);  // of two stacks with one cumulative type
  pprof::Profile three = MemoryProfile({{1, 70, 0}, {2, 1, 0}, {3, 1, 0}});
  {
    Delta other(&room);
    Apply(&other, MemoryProfile({{1, 1, 0}}));
    Delta delta(&room);
    Apply(&delta, MemoryProfile({{1, 60, 0}}));
    EXPECT_EQ(delta.Apply(&three).code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 71, 0}})), ElementsAre(11, 0));
  }
  Delta delta(&room);
  Apply(&delta, MemoryProfile({{1, 60, 0}, {2, 1, 0}}));
  EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 61, 0}, {2, 1, 0}})), ElementsAre(1, 0, 0, 0));
}

TEST(Delta, OtherSampleTypesStayAsTheyAre) {
  Delta delta;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Apply(&delta, MemoryProfile({{1, 60, 5}}, "goroutine")), ElementsAre(60, 5));
  }
}

TEST(Delta, SumOfDeltasIsLastMinusFirstOverManyProfiles) {
  Delta delta;
  std::vector<Row> rows;
  int64_t sum = 0;
  int64_t first = 0;
  uint64_t random = 1;
  for (int round = 0; round < 50; ++round) {
    rows.push_back({static_cast<uint64_t>(round + 1) * 64, 0, 0});
    int64_t total = 0;
    for (Row& row : rows) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      row.allocated += static_cast<int64_t>(random >> 60);
      total += row.allocated;
    }
    const auto values = Apply(&delta, MemoryProfile(rows));
    for (size_t i = 0; i < values.size(); i += 2)
      sum += values[i];
    if (round == 0) first = total;
    EXPECT_EQ(sum, total - first);
  }
}

}  // namespace
}  // namespace flamefleet::agent
