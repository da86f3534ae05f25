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
  delta->Apply(&profile);
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
