// SPDX-License-Identifier: Apache-2.0
#include "store/query/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "store/db/label_sets.h"
#include "store/query/engine.h"
#include "store/query/timeline.h"
#include "tests/fakes/fake_clock.h"
#include "tests/store/store_client.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

namespace flamefleet::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each look at it costs a second.
class SlowClock final : public Clock {
 public:
  int64_t WallNanos() const override { return now_ns_; }
  int64_t MonotonicNanos() const override { return now_ns_ += kNanosPerSecond; }

 private:
  mutable std::atomic<int64_t> now_ns_ = 0;
};

class QueryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Database>> database =
        Database::Open({.directory = dir_.path()}, &clock_, &metrics_);
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    std::vector<NewProfile> profiles;
    for (int i = 1; i <= 10; ++i) {
      const int64_t time_ns = clock_.WallNanos() - i * kNanosPerSecond;
      profiles.push_back({SeriesLabels("shop"), time_ns, CpuProfileAt(time_ns)});
    }
    ASSERT_TRUE(database_->Append(profiles).ok());
  }

  Result<MergedProfile> Merge(const Clock& clock, const QueryLimits& limits) {
    return MergeProfiles(database_.get(), clock, *ParseSelector(""), {0, clock_.WallNanos()},
                         limits);
  }

  TempDir dir_;
  FakeClock clock_;
  Metrics metrics_;
  std::unique_ptr<Database> database_;
};

TEST_F(QueryTest, AllProfilesOfTheRangeAreMerged) {
  const Result<MergedProfile> merged = Merge(clock_, {});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->profiles, 10U);
  EXPECT_EQ(merged->series, 1U);
  EXPECT_EQ(pprof::TotalValue(merged->profile, 0), 60);
}

TEST_F(QueryTest, ResultThatIsTooLargeIsAnError) {
  const Status status = Merge(clock_, {.max_merge_bytes = 1000}).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(ErrorMessage(status), HasSubstr("choose a shorter time range"));
}

TEST_F(QueryTest, QueryThatTakesTooLongIsAnError) {
  const Status status = Merge(SlowClock(), {.max_duration_ns = 5 * kNanosPerSecond}).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(ErrorMessage(status), HasSubstr("takes longer than 5 s"));
  EXPECT_TRUE(Merge(SlowClock(), {.max_duration_ns = 20 * kNanosPerSecond}).ok());
}

TEST_F(QueryTest, WhoWouldWaitTooLongIsToldAtOnce) {
  QueryEngine engine(database_.get(), &clock_, kDefaultQueryMemory);
  constexpr int kSurplus = 3;
  std::atomic<int> refused = 0;
  std::atomic<int> served = 0;
  std::vector<std::jthread> threads;
  {
    const QueryTurn first(&engine);
    const QueryTurn second(&engine);
    ASSERT_TRUE(first.status().ok() && second.status().ok());
    for (int i = 0; i < kMaxWaitingQueries + kSurplus; ++i) {
      threads.emplace_back([&] {
        const QueryTurn turn(&engine);
        (turn.status().ok() ? served : refused).fetch_add(1);
      });
    }
    EXPECT_TRUE(WaitUntil([&] { return refused >= kSurplus; }));
    EXPECT_EQ(served, 0);
  }
  threads.clear();
  EXPECT_GT(served, 0);
}

TEST(Selection, OfManySeriesThatTakesTooLongIsAnError) {
  TempDir dir;
  const SlowClock clock;
  Metrics metrics;
  const auto database = *Database::Open({.directory = dir.path()}, &clock, &metrics);
  std::vector<NewProfile> profiles;
  for (int64_t i = 0; i < 2 * kMaxSelectionNs / kNanosPerSecond; ++i) {
    profiles.push_back({SeriesLabels("s" + std::to_string(i)), i, CpuProfileAt(i)});
    profiles.back().totals = {{.type = {"cpu", "nanoseconds", "cpu", "nanoseconds"}}};
  }
  ASSERT_TRUE(database->Append(profiles).ok());
  const TimeRange all{0, INT64_MAX};
  const auto total = [](const ProfileTotal&) { return OkStatus(); };
  const auto series = [](const Labels&) { return OkStatus(); };
  for (const Status& status :
       {database->SelectTotals({}, all, total), database->SelectNewestTotals({}, all, total),
        database->SelectSeries({}, all, series)}) {
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(ErrorMessage(status), HasSubstr("choose a shorter time range or fewer series"));
  }
}

TEST_F(QueryTest, SelectionEndsWithTheFirstErrorOfItsVisitor) {
  NewProfile profile{SeriesLabels("other"), clock_.WallNanos(), CpuProfileAt(1)};
  profile.totals = {{.type = {"cpu", "nanoseconds", "cpu", "nanoseconds"}, .is_default = true}};
  NewProfile later = profile;
  later.time_ns += 1;
  ASSERT_TRUE(database_->Append({profile, later}).ok());
  int calls = 0;
  const TimeRange all{0, INT64_MAX};
  const auto refuse = [&](const auto&) {
    ++calls;
    return ResourceExhaustedError("enough");
  };
  EXPECT_EQ(database_->SelectTotals({}, all, refuse).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(database_->SelectSeries({}, all, refuse).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(calls, 2);
}

TEST(LabelSets, AreEachOnceAndBounded) {
  LabelSets sets;
  const std::string text(1 << 20, 'x');
  Status status;
  for (int i = 0; status.ok() && i < 100; ++i) {
    const Labels labels = {{"name", text + std::to_string(i)}};
    status = sets.Add(labels);
    if (status.ok()) status = sets.Add(labels);
  }
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(sets.sets().size(), kMaxLabelSetsBytes >> 20);
  EXPECT_THAT(ErrorMessage(status), HasSubstr("more than 31 series match"));
}

TEST_F(QueryTest, TimelineSpreadsAProfileOverTheTimeThatItCovers) {
  constexpr int64_t kStep = 10 * kNanosPerSecond;
  const TimeRange range{clock_.WallNanos() - 4 * kStep, clock_.WallNanos()};
  const auto total = [](int64_t value) {
    return Total{
        .type = {"cpu", "nanoseconds", "cpu", "nanoseconds"}, .is_default = true, .value = value};
  };
  const auto append = [&](int64_t after_ns, int64_t duration_ns, int64_t value) {
    const int64_t time_ns = range.from_ns + after_ns;
    ASSERT_TRUE(database_
                    ->Append({{SeriesLabels("spread"),
                               time_ns,
                               CpuProfileAt(time_ns),
                               {total(value)},
                               duration_ns}})
                    .ok());
  };
  append(0, kStep, 100);                  // one step
  append(kStep / 2, kStep, 7);            // half and half; what does not divide goes to the last
  append(2 * kStep, 0, 1000);             // of a moment
  append(3 * kStep, 1000 * kStep, 5000);  // beyond the range
  append(3 * kStep + 1, -1, 10'000);      // nonsense: of a moment
  const Result<Timeline> timeline =
      SelectTimeline(database_.get(), *ParseSelector(""), range, kStep, "");
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  const Timeline::Line& line = timeline->lines.at("");
  EXPECT_EQ(line.total, 16'107);
  EXPECT_THAT(line.points, ElementsAre(104, 3, 1000, 10'000 + 14, 14));
}

TEST_F(QueryTest, PointsOfAllLinesAreBounded) {
  std::vector<NewProfile> profiles;
  constexpr int64_t kRange = static_cast<int64_t>(kMaxTimelinePoints - 1) * kNanosPerSecond;
  constexpr size_t kSeries = kMaxTimelineSums / kMaxTimelinePoints + 1;
  const int64_t now = clock_.WallNanos();
  for (size_t i = 0; i < kSeries; ++i) {
    profiles.push_back({SeriesLabels("s" + std::to_string(i)), now, CpuProfileAt(now)});
    profiles.back().totals = {
        {.type = {"cpu", "nanoseconds", "cpu", "nanoseconds"}, .is_default = true, .value = 1}};
  }
  ASSERT_TRUE(database_->Append(profiles).ok());
  const TimeRange range{now - kRange, now};
  const Status status =
      SelectTimeline(database_.get(), *ParseSelector(""), range, kNanosPerSecond, "service_name")
          .status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(ErrorMessage(status), HasSubstr("longer step"));
}

}  // namespace
}  // namespace flamefleet::store
