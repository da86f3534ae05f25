// SPDX-License-Identifier: Apache-2.0
#include "store/db/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/sqlite.h"
#include "store/db/label_sets.h"
#include "tests/fakes/fake_clock.h"
#include "tests/store/store_client.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kHour = 3600 * kNanosPerSecond;
constexpr int64_t kNow = (20'000 * 24 + 12) * kHour;     // noon of 2024-10-04
constexpr int64_t kHousekeeping = 11 * kNanosPerSecond;  // it is due after that

class DatabaseTest : public ::testing::Test {
 protected:
  void Open() {
    database_.reset();
    metrics_ = std::make_unique<Metrics>();
    options_.directory = dir_.path();
    Result<std::unique_ptr<Database>> database = Database::Open(options_, &clock_, metrics_.get());
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
  }

  // A profile of one function.
  static NewProfile Profile(const std::string& service, int64_t time_ns,
                            const std::string& function) {
    pprof::Profile p;
    p.sample_types = {{p.strings.Intern("samples"), p.strings.Intern("count")}};
    p.functions = {{.name = p.strings.Intern(function)}};
    p.lines = {{.function = 0}};
    p.locations = {{.line_count = 1}};
    p.sample_locations = {0};
    p.samples = {{.location_count = 1}};
    p.values = {1};
    NewProfile profile{SeriesLabels(service), time_ns, ""};
    pprof::Encode(p, &profile.pprof);
    return profile;
  }

  Status Append(const std::string& service, int64_t time_ns, const std::string& function) {
    return database_->Append({Profile(service, time_ns, function)});
  }

  // The functions of what matches, in the order of the visit.
  std::vector<std::string> Select(const std::string& query, int64_t from = 0,
                                  int64_t until = INT64_MAX) {
    std::vector<std::string> found;
    const Status status =
        database_->Select(*ParseSelector(query), {from, until}, [&](const SelectedPart& part) {
          const pprof::Profile& p = *part.profile;
          for (const pprof::Sample& sample : p.samples) {
            const pprof::Location& leaf = p.locations[p.sample_locations[sample.first_location]];
            found.emplace_back(p.strings.Get(p.functions[p.lines[leaf.first_line].function].name));
          }
          return OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
    return found;
  }

  std::vector<std::string> Files(const std::string& part) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.find(part) != std::string::npos) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  double Metric(const std::string& line_start) const {
    const std::string text = metrics_->RenderText();
    const size_t at = text.find("\n" + line_start + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line_start.size() + 2));
  }

  std::string PathOfDay(int64_t time_ns) const {
    return dir_.path() + "/" + Day::FileName(time_ns / kNanosPerDay);
  }

  TempDir dir_;
  FakeClock clock_{kNow};
  DatabaseOptions options_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<Database> database_;
};

TEST_F(DatabaseTest, ProfilesAreSelectedByLabelsAndTime) {
  Open();
  ASSERT_TRUE(Append("a", kNow, "a now").ok());
  ASSERT_TRUE(Append("a", kNow - 24 * kHour, "a yesterday").ok());
  ASSERT_TRUE(Append("b", kNow, "b now").ok());
  EXPECT_THAT(Select(""), ElementsAre("a yesterday", "a now", "b now"));
  EXPECT_THAT(Select(R"({service_name="b"})"), ElementsAre("b now"));
  EXPECT_THAT(Select("", kNow - 1, kNow), ElementsAre("a now", "b now"));
  EXPECT_THAT(Select("", kNow - 24 * kHour, kNow - 1), ElementsAre("a yesterday"));
  EXPECT_THAT(Select("memory"), IsEmpty());
}

TEST_F(DatabaseTest, SeriesAreThoseWithAProfileInTheRange) {
  Open();
  ASSERT_TRUE(Append("a", kNow, "1").ok());
  ASSERT_TRUE(Append("a", kNow - 24 * kHour, "2").ok());
  ASSERT_TRUE(Append("b", kNow - kHour, "3").ok());
  const auto series = [&](const TimeRange& range) {
    LabelSets sets;
    const auto add = [&](const Labels& labels) { return sets.Add(labels); };
    EXPECT_TRUE(database_->SelectSeries(Selector{}, range, add).ok());
    return sets.sets();
  };
  EXPECT_THAT(series({0, INT64_MAX}), ElementsAre(SeriesLabels("a"), SeriesLabels("b")));
  EXPECT_THAT(series({kNow, kNow}), ElementsAre(SeriesLabels("a")));
}

TEST_F(DatabaseTest, WhatWasStoredIsThereAfterReopening) {
  Open();
  ASSERT_TRUE(Append("a", kNow, "one").ok());
  Open();
  ASSERT_TRUE(Append("a", kNow + 1, "two").ok());
  EXPECT_THAT(Select(""), ElementsAre("one", "two"));
}

TEST_F(DatabaseTest, RetryOfTheSameBytesIsStoredOnce) {
  Open();
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(Append("a", kNow, "same").ok());
  ASSERT_TRUE(Append("a", kNow, "other").ok());
  ASSERT_TRUE(Append("a", kNow + 1, "same").ok());
  EXPECT_THAT(Select(""), SizeIs(3));
  EXPECT_EQ(Metric("flamefleet_store_profiles_stored_total"), 3);
  EXPECT_EQ(Metric("flamefleet_store_profiles_duplicate_total"), 2);
}

TEST_F(DatabaseTest, ManyWritersAreAllStored) {
  Open();
  constexpr int kThreads = 8;
  constexpr int kEach = 50;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t] {
        for (int i = 0; i < kEach; ++i) {
          EXPECT_TRUE(Append("s" + std::to_string(t), kNow + i, "profile").ok());
        }
      });
    }
  }
  EXPECT_THAT(Select(""), SizeIs(kThreads * kEach));
}

TEST_F(DatabaseTest, DaysOlderThanTheRetentionAreRemoved) {
  options_.retention_ns = 72 * kHour;
  Open();
  for (int day = 0; day <= 3; ++day)
    ASSERT_TRUE(Append("a", kNow - day * 24 * kHour, "x").ok());
  EXPECT_THAT(Files(".db"), SizeIs(testing::Ge(4U)));
  clock_.Advance(48 * kHour);
  EXPECT_TRUE(WaitUntil(
      [&] { return Metric("flamefleet_store_databases_removed_total{reason=\"age\"}") == 2; }));
  EXPECT_THAT(Select(""), SizeIs(2));
  database_.reset();
  EXPECT_THAT(Files(".db"), ElementsAre("2024-10-03.db", "2024-10-04.db"));
}

TEST_F(DatabaseTest, ClockThatIsSetAheadDeletesNothingForAnHour) {
  options_.retention_ns = 72 * kHour;
  Open();
  ASSERT_TRUE(Append("a", kNow, "x").ok());
  clock_.StepWall(365 * kNanosPerDay);
  clock_.Advance(kHour / 60);
  // The round that stores the second profile comes after the housekeeping of the first one's.
  for (int64_t i = 1; i <= 2; ++i)
    ASSERT_TRUE(Append("a", kNow + i, "x" + std::to_string(i)).ok());
  EXPECT_THAT(Select(""), SizeIs(3));
  Open();  // nor when it starts with such a clock
  EXPECT_THAT(Select(""), SizeIs(3));
  clock_.Advance(kHour);
  EXPECT_TRUE(WaitUntil([&] { return Select("").empty(); }));
}

TEST_F(DatabaseTest, OldestDayGoesWhenAllAreTooLarge) {
  options_.max_bytes = 3 << 20;
  Open();
  const std::string megabyte(1 << 20, 'x');
  for (int day = 3; day >= 0; --day) {
    ASSERT_TRUE(Append("a", kNow - day * 24 * kHour, megabyte).ok());
  }
  clock_.Advance(kHour / 60);
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(PathOfDay(kNow - 72 * kHour)); }));
  EXPECT_TRUE(std::filesystem::exists(PathOfDay(kNow)));
}

TEST_F(DatabaseTest, OneDayThatIsTooLargeLosesItsOldestProfiles) {
  options_.max_bytes = 4 << 20;
  Open();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Append("a", kNow + i, std::string(64 << 10, static_cast<char>('!' + i % 90))).ok());
  }
  // What is read at that moment keeps the oldest until the next time.
  EXPECT_TRUE(WaitUntil([&] {
    clock_.Advance(kHousekeeping);
    return Select("", kNow, kNow).empty();
  }));
  EXPECT_TRUE(WaitUntil([&] {
    clock_.Advance(kHousekeeping);
    return Metric("flamefleet_store_disk_bytes") <= static_cast<double>(options_.max_bytes);
  }));
  EXPECT_THAT(Select("", kNow + 99, kNow + 99), SizeIs(1));
}

TEST_F(DatabaseTest, NothingIsDeletedForTheRoomThatAReaderTakes) {
  options_.max_bytes = 4 << 20;
  Open();
  const auto append = [&](int i) {
    return Append("a", kNow + i, std::string(64 << 10, static_cast<char>('!' + i % 90)));
  };
  ASSERT_TRUE(append(0).ok());
  int profiles = 1;
  const Status status = database_->Select(Selector{}, {0, INT64_MAX}, [&](const SelectedPart&) {
    for (; profiles < 100; ++profiles)
      EXPECT_TRUE(append(profiles).ok());
    clock_.Advance(kHour / 60);
    EXPECT_TRUE(WaitUntil([&] {
      return Metric("flamefleet_store_disk_bytes") > static_cast<double>(options_.max_bytes);
    }));
    EXPECT_TRUE(append(profiles++).ok());  // after the housekeeping
    return OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(Select("", kNow, kNow), SizeIs(1));
  EXPECT_TRUE(WaitUntil([&] {
    clock_.Advance(kHousekeeping);
    return Metric("flamefleet_store_disk_bytes") <= static_cast<double>(options_.max_bytes);
  }));
}

TEST_F(DatabaseTest, DamagedFilesGoFirstWhenTheRoomIsShort) {
  options_.max_bytes = 4 << 20;
  Open();
  ASSERT_TRUE(Append("a", kNow, "today").ok());
  std::ofstream(PathOfDay(kNow - 24 * kHour) + ".corrupt-1", std::ios::binary)
      << std::string(5 << 20, 'x');
  clock_.Advance(kHour / 60);
  EXPECT_TRUE(WaitUntil([&] { return Files("corrupt").empty(); }));
  EXPECT_THAT(Select(""), ElementsAre("today"));
}

TEST_F(DatabaseTest, SelectionGoesOnWhileItsDayIsRemoved) {
  Open();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Append("a", kNow + i, "profile " + std::to_string(i)).ok());
  }
  size_t seen = 0;
  const Status status = database_->Select(Selector{}, {0, INT64_MAX}, [&](const SelectedPart&) {
    if (++seen == 1) {
      clock_.Advance(100 * 24 * kHour);
      EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(PathOfDay(kNow)); }));
      // A new file of that name is none of its business.
      EXPECT_TRUE(Append("b", kNow, "new").ok());
    }
    return OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen, 100U);
}

TEST_F(DatabaseTest, FileThatIsNoDatabaseIsSetAsideAndTheRestServed) {
  Open();
  ASSERT_TRUE(Append("a", kNow, "today").ok());
  ASSERT_TRUE(Append("a", kNow - 24 * kHour, "yesterday").ok());
  database_.reset();
  std::ofstream(PathOfDay(kNow - 24 * kHour), std::ios::binary) << std::string(8192, 'x');
  Open();
  EXPECT_THAT(Select(""), ElementsAre("today"));
  EXPECT_THAT(Files("corrupt"), SizeIs(1));
  EXPECT_EQ(Metric("flamefleet_store_databases_damaged_total"), 1);
  ASSERT_TRUE(Append("a", kNow - 24 * kHour, "yesterday").ok());
  EXPECT_THAT(Select(""), ElementsAre("yesterday", "today"));
}

TEST_F(DatabaseTest, DamageFoundByAQueryIsSetAsideAndTheRestServed) {
  Open();
  ASSERT_TRUE(Append("a", kNow, "today").ok());
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(Append("a", kNow - 24 * kHour + i, std::string(200, 'a') + std::to_string(i)).ok());
  }
  database_.reset();
  {
    // Everything behind the first pages, where the schema and the series are.
    std::fstream file(PathOfDay(kNow - 24 * kHour),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(16 * 4096);
    file << std::string(64 * 4096, '\xee');
  }
  Open();
  EXPECT_THAT(Select(""), testing::Contains("today"));
  EXPECT_TRUE(WaitUntil([&] { return !Files("corrupt").empty(); }));
  EXPECT_EQ(Metric("flamefleet_store_databases_damaged_total"), 1);
  EXPECT_THAT(Select(""), ElementsAre("today"));
}

TEST_F(DatabaseTest, ProfileWhoseBytesChangedIsLeftOut) {
  Open();
  ASSERT_TRUE(Append("a", kNow, std::string(100'000, 'a')).ok());
  ASSERT_TRUE(Append("a", kNow + 1, "good").ok());
  database_.reset();
  std::string content;
  {
    std::ifstream in(PathOfDay(kNow), std::ios::binary);
    content.assign(std::istreambuf_iterator<char>(in), {});
  }
  content[content.find(std::string(4000, 'a')) + 2000] = 'b';
  std::ofstream(PathOfDay(kNow), std::ios::binary) << content;
  Open();
  EXPECT_THAT(Select(""), ElementsAre("good"));
  EXPECT_EQ(Metric("flamefleet_store_profiles_damaged_total"), 1);
}

TEST_F(DatabaseTest, SecondStoreOnTheSameDirectoryIsRefused) {
  Open();
  const Status second = Database::Open(options_, &clock_, metrics_.get()).status();
  EXPECT_EQ(second.code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(ErrorMessage(second), HasSubstr("another flamefleet-store uses it"));
}

TEST_F(DatabaseTest, FileOfAnotherVersionIsRefusedAndKept) {
  Open();
  ASSERT_TRUE(Append("a", kNow, "x").ok());
  database_.reset();
  const auto set_version = [&](const std::string& version) {
    Result<SqliteConnection> file =
        SqliteConnection::Open(PathOfDay(kNow), SqliteConnection::Mode::kReadWriteCreate);
    ASSERT_TRUE(file->Execute(("PRAGMA user_version = " + version).c_str()).ok());
  };
  const std::pair<const char*, const char*> others[] = {
      {"1", "development version"}, {"2", "development version"}, {"5", "newer flamefleet-store"}};
  for (const auto& [version, message] : others) {
    set_version(version);
    const Status status = Database::Open(options_, &clock_, metrics_.get()).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(ErrorMessage(status), HasSubstr(message));
    EXPECT_THAT(ErrorMessage(status), HasSubstr(PathOfDay(kNow)));
    EXPECT_TRUE(std::filesystem::exists(PathOfDay(kNow)));
  }
  set_version("4");
  Open();
  EXPECT_THAT(Select("process_cpu"), ElementsAre("x"));
}

TEST_F(DatabaseTest, FileOfTheVersionBeforeIsTakenOver) {
  Open();
  ASSERT_TRUE(Append("a", kNow, "x").ok());
  database_.reset();
  {
    Result<SqliteConnection> file =
        SqliteConnection::Open(PathOfDay(kNow), SqliteConnection::Mode::kReadWriteCreate);
    ASSERT_TRUE(
        file->Execute("ALTER TABLE profile DROP COLUMN duration_ns; PRAGMA user_version = 3").ok());
  }
  Open();
  EXPECT_THAT(Select("process_cpu"), ElementsAre("x"));
  ASSERT_TRUE(Append("a", kNow + 1, "y").ok());
  EXPECT_THAT(Select("process_cpu"), ElementsAre("x", "y"));
}

TEST_F(DatabaseTest, ClockThatGoesBackLosesNothing) {
  options_.retention_ns = 2 * kNanosPerDay;
  Open();
  ASSERT_TRUE(Append("a", kNow, "before").ok());
  clock_.StepWall(-10 * kNanosPerDay);
  clock_.Advance(20 * kNanosPerSecond);  // housekeeping
  ASSERT_TRUE(Append("a", clock_.WallNanos(), "after").ok());
  EXPECT_THAT(Select("process_cpu"), ElementsAre("after", "before"));
  Open();
  EXPECT_THAT(Select("process_cpu"), ElementsAre("after", "before"));
  // Once it is right again, what was stored under the wrong time is as old as it says.
  clock_.StepWall(10 * kNanosPerDay);
  Open();
  EXPECT_THAT(Select("process_cpu"), ElementsAre("before"));
}

TEST_F(DatabaseTest, NumberOfSeriesPerDayIsBounded) {
  Open();
  std::vector<NewProfile> profiles;
  for (size_t i = 0; i < kMaxSeriesPerDay; ++i) {
    profiles.push_back(Profile(std::to_string(i), kNow, "x"));
  }
  ASSERT_TRUE(database_->Append(profiles).ok());
  EXPECT_EQ(Append("one more", kNow, "x").code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(Append("1", kNow + 1, "x").ok());
  EXPECT_TRUE(Append("one more", kNow + 24 * kHour, "x").ok());
}

TEST(Day, FileNameIsTheDateAndBack) {
  EXPECT_EQ(Day::FileName(0), "1970-01-01.db");
  EXPECT_EQ(Day::FileName(20'786), "2026-11-29.db");
  EXPECT_EQ(Day::NumberOfFileName("2026-11-29.db"), 20'786);
  for (const char* other : {"2026-11-29.db-wal", "2026-13-01.db", "2026-1-01.db", "lock", "",
                            "2026-11-29.db.corrupt-1"}) {
    EXPECT_EQ(Day::NumberOfFileName(other), -1) << other;
  }
}

}  // namespace
}  // namespace flamefleet::store
