// SPDX-License-Identifier: Apache-2.0
#include "base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace flamefleet {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class ProgressTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  Progress progress_{"spool", clock_};
};

TEST_F(ProgressTest, WorkThatIsLateNamesItsStage) {
  const Progress::Work work(progress_, seconds(10));
  clock_.Advance(10 * kNanosPerSecond);
  EXPECT_TRUE(progress_.Check().ok());
  clock_.Advance(5 * kNanosPerSecond);
  EXPECT_THAT(ErrorMessage(progress_.Check()), HasSubstr("stage spool"));
}

TEST_F(ProgressTest, StageWithoutWorkIsNeverLate) {
  { const Progress::Work work(progress_, seconds(10)); }
  clock_.Advance(3600 * kNanosPerSecond);
  EXPECT_TRUE(progress_.Check().ok());
}

TEST_F(ProgressTest, OneLateThreadAmongBusyOnesIsFound) {
  const Progress::Work stuck(progress_, seconds(10));
  for (int i = 0; i < 5; ++i) {
    const Progress::Work other(progress_, seconds(10));
    clock_.Advance(5 * kNanosPerSecond);
  }
  EXPECT_FALSE(progress_.Check().ok());
}

TEST_F(ProgressTest, EndedLateWorkIsForgiven) {
  auto work = std::make_unique<Progress::Work>(progress_, seconds(10));
  clock_.Advance(60 * kNanosPerSecond);
  EXPECT_FALSE(progress_.Check().ok());
  work.reset();
  EXPECT_TRUE(progress_.Check().ok());
}

TEST_F(ProgressTest, MoreThreadsThanAreWatchedWorkOn) {
  std::vector<std::unique_ptr<Progress::Work>> works;
  for (size_t i = 0; i <= Progress::kMaxThreads; ++i)
    works.push_back(std::make_unique<Progress::Work>(progress_, seconds(10)));
  works.clear();
  clock_.Advance(60 * kNanosPerSecond);
  EXPECT_TRUE(progress_.Check().ok());
}

}  // namespace
}  // namespace flamefleet
