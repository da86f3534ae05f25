// SPDX-License-Identifier: Apache-2.0
#include "agent/sample/event_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flamefleet::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr uint64_t kPeriod = 10'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

TEST(BusyNanosByCpu, CountsTheTimeOfProgramsOnEachCpu) {
  EXPECT_THAT(BusyNanosByCpu("cpu  30 2 12 900 5 7 8 9 0 0\n"
                             "cpu0 10 1 4 300 5 7 8 9 0 0\n"
                             "cpu12 20 1 8 600 0 0 0 0 0 0\n"
                             "intr 1 2 3\nctxt 5\n"),
              ElementsAre(Pair(0, 150'000'000), Pair(12, 290'000'000)));
}

TEST(BusyNanosByCpu, LeavesOutWhatItCannotRead) {
  EXPECT_THAT(BusyNanosByCpu(""), ElementsAre());
  EXPECT_THAT(BusyNanosByCpu("cpu0 1\ncpux 1 2 3\ncpu1 1 2 3"), ElementsAre(Pair(1, 60'000'000)));
}

TEST(EventCheck, HearsCpusWhosePeriodsAreCounted) {
  EventCheck check;
  check.Update({0, 0}, {{0, 0}, {1, 0}}, kPeriod);
  check.Update({1000, 950}, {{0, 10 * kSecond}, {1, 10 * kSecond}}, kPeriod);
  EXPECT_EQ(check.Problem(), "");
  EXPECT_FALSE(check.IsSilent());
}

TEST(EventCheck, TellsOfTheCpuThatIsSilent) {
  EventCheck check;
  check.Update({0, 0}, {{0, 0}, {1, 0}}, kPeriod);
  check.Update({1000, 3}, {{0, 10 * kSecond}, {1, 10 * kSecond}}, kPeriod);
  EXPECT_THAT(check.Problem(), HasSubstr("CPU 1,"));
  EXPECT_FALSE(check.IsSilent());  // the other one is heard
  check.Update({2000, 1003}, {{0, 20 * kSecond}, {1, 20 * kSecond}}, kPeriod);
  EXPECT_EQ(check.Problem(), "");
}

TEST(EventCheck, IsSilentWhereNoCpuIsHeard) {
  EventCheck check;
  check.Update({7, 0}, {{0, 0}, {1, 0}}, kPeriod);
  check.Update({7, 0}, {{0, 10 * kSecond}, {1, kSecond}}, kPeriod);
  EXPECT_THAT(check.Problem(), HasSubstr("CPU 0,"));
  EXPECT_TRUE(check.IsSilent());
}

TEST(EventCheck, ACpuThatIsHeardButRarelyUsedIsEnough) {
  EventCheck check;
  check.Update({0, 0}, {{0, 0}, {1, 0}}, kPeriod);
  check.Update({0, 90}, {{0, 10 * kSecond}, {1, kSecond}}, kPeriod);
  EXPECT_THAT(check.Problem(), HasSubstr("CPU 0,"));
  EXPECT_FALSE(check.IsSilent());
}

TEST(EventCheck, AnIdleCpuIsNotJudged) {
  EventCheck check;
  check.Update({0}, {{0, 0}}, kPeriod);
  check.Update({0}, {{0, kSecond}}, kPeriod);
  EXPECT_EQ(check.Problem(), "");
}

TEST(EventCheck, AddsUpSmallStepsUntilTheyAreEnough) {
  EventCheck check;
  for (uint64_t second = 0; second <= 3; ++second)
    check.Update({0}, {{0, second * kSecond}}, kPeriod);
  EXPECT_TRUE(check.IsSilent());
}

TEST(EventCheck, BeginsAnewWithAnotherFrequencyOrCpu) {
  EventCheck check;
  check.Update({0}, {{0, 0}}, kPeriod);
  check.Update({0}, {{0, 10 * kSecond}}, 2 * kPeriod);
  EXPECT_FALSE(check.IsSilent());
  check.Update({0}, {}, 2 * kPeriod);  // it went
  check.Update({0}, {{0, 20 * kSecond}}, 2 * kPeriod);
  EXPECT_FALSE(check.IsSilent());
}

TEST(EventCheck, ASilentTimerIsOpenedAgainAtOnceAndThenEverMoreRarely) {
  EventCheck check;
  check.Update({0, 0}, {{0, 0}, {1, 0}}, kPeriod);
  std::vector<uint64_t> reopened;
  for (uint64_t n = 1; n <= 200; ++n) {
    const uint64_t busy = 10 * n * kSecond;
    const std::vector<int> due = check.Update({1000 * n, 0}, {{0, busy}, {1, busy}}, kPeriod);
    if (due.empty()) continue;
    EXPECT_THAT(due, ElementsAre(1));
    reopened.push_back(n);
  }
  EXPECT_THAT(reopened, ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 192));
}

TEST(EventCheck, ATimerThatWasHeardAgainIsOpenedAgainAtOnce) {
  EventCheck check;
  auto update = [&check, seconds = uint64_t{0}](uint64_t events) mutable {
    return check.Update({events}, {{0, kSecond * seconds++ * 10}}, kPeriod);
  };
  update(0);
  EXPECT_THAT(update(0), ElementsAre(0));
  EXPECT_THAT(update(0), ElementsAre(0));
  EXPECT_THAT(update(0), IsEmpty());
  EXPECT_THAT(update(1000), IsEmpty());
  EXPECT_THAT(update(1000), ElementsAre(0));
}

TEST(EventCheck, SumsThatStepBackAreNoTimeAtAll) {
  EventCheck check;
  check.Update({0}, {{0, 10 * kSecond}}, kPeriod);
  check.Update({0}, {{0, 9 * kSecond}}, kPeriod);
  EXPECT_EQ(check.Problem(), "");
}

}  // namespace
}  // namespace flamefleet::agent
