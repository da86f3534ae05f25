// SPDX-License-Identifier: Apache-2.0
#include "agent/health/collection_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/reasons.h"
#include "tests/fakes/fake_clock.h"

namespace flamefleet::agent {
namespace {

using std::chrono::seconds;

constexpr seconds kWindow{10};
const CollectionKey kCpu = {"uid", "app", ProfileType::kCpu};
const CollectionKey kMutex = {"uid", "app", ProfileType::kMutex};

class CollectionHealthTest : public ::testing::Test {
 protected:
  CollectionHealthTest() { SetBoth(); }
  void SetBoth() {
    book_.SetCollections({{.key = kCpu, .ebpf = true, .window = kWindow},
                          {.key = kMutex, .ebpf = false, .window = kWindow}});
  }
  CollectionStatus Of(const CollectionKey& key) const {
    for (const CollectionStatus& status : book_.Snapshot()) {
      if (status.key == key) return status;
    }
    ADD_FAILURE() << "not in the book";
    return {};
  }
  void Pass(seconds time) { clock_.Advance(std::chrono::nanoseconds(time).count()); }
  bool Changed() { return book_.AwaitChange({}, std::chrono::nanoseconds(0)); }

  FakeClock clock_;
  CollectionHealthBook book_{clock_};
};

TEST_F(CollectionHealthTest, ANewCollectionWaits) {
  EXPECT_EQ(Of(kCpu).state, CollectionState::kWaiting);
  EXPECT_EQ(Of(kMutex).state, CollectionState::kWaiting);
}

TEST_F(CollectionHealthTest, ADeliveryIsFreshForAFewWindows) {
  book_.OnDelivered(kCpu);
  EXPECT_EQ(Of(kCpu).state, CollectionState::kDelivering);
  EXPECT_EQ(Of(kCpu).last_delivered_ns, clock_.WallNanos());
  EXPECT_EQ(Of(kCpu).profiles_delivered, 1U);
  Pass(kWindow * kFreshWindows);
  EXPECT_EQ(Of(kCpu).state, CollectionState::kDelivering);
  Pass(seconds(1));
  EXPECT_EQ(Of(kCpu).state, CollectionState::kIdle);
}

TEST_F(CollectionHealthTest, AddsUpHowTheStacksOfACollectionEnd) {
  const size_t depth_limit = 2;
  FinishedProfile profile{.collection = kCpu};
  profile.stack_ends[depth_limit] = 3;
  book_.CountStacks(profile);
  book_.CountStacks(profile);
  profile.collection.pod_uid = "unwanted";
  book_.CountStacks(profile);
  SetBoth();
  EXPECT_EQ(Of(kCpu).stack_ends.at(depth_limit), 6U);
}

TEST_F(CollectionHealthTest, ASampledContainerThatUsesNoCpuIsIdleInTheEnd) {
  Pass(kWindow * kFreshWindows + seconds(1));
  EXPECT_EQ(Of(kCpu).state, CollectionState::kIdle);
  EXPECT_EQ(Of(kMutex).state, CollectionState::kWaiting);
}

TEST_F(CollectionHealthTest, AContainerThatHasNotStartedIsNeverIdle) {
  const CollectionSpec spec = {.key = kCpu, .ebpf = true, .can_run = false, .window = kWindow};
  book_.SetCollections({spec});
  Pass(kWindow * kFreshWindows * 2);
  EXPECT_EQ(Of(kCpu).state, CollectionState::kWaiting);
  SetBoth();
  EXPECT_EQ(Of(kCpu).state, CollectionState::kWaiting);
  Pass(kWindow * kFreshWindows * 2);
  EXPECT_EQ(Of(kCpu).state, CollectionState::kIdle);
}

TEST_F(CollectionHealthTest, APullThatFoundNothingIsIdle) {
  book_.OnNothingToDeliver(kMutex);
  EXPECT_EQ(Of(kMutex).state, CollectionState::kIdle);
}

TEST_F(CollectionHealthTest, AFailureKeepsItsBeginningUntilADelivery) {
  const int64_t begin = clock_.WallNanos();
  book_.OnCollectFailed(kMutex, reasons::kTimeout, "slow");
  Pass(seconds(30));
  book_.OnCollectFailed(kMutex, reasons::kConnectionRefused, "refused");
  CollectionStatus status = Of(kMutex);
  EXPECT_EQ(status.state, CollectionState::kFailing);
  EXPECT_EQ(status.reason, "ConnectionRefused");
  EXPECT_EQ(status.message, "refused");
  EXPECT_EQ(status.failing_since_ns, begin);
  book_.OnDelivered(kMutex);
  status = Of(kMutex);
  EXPECT_EQ(status.state, CollectionState::kDelivering);
  EXPECT_EQ(status.reason, "");
  EXPECT_EQ(status.failing_since_ns, 0);
}

TEST_F(CollectionHealthTest, AProfileThatTheBackendDoesNotTakeIsAFailure) {
  book_.OnDelivered(kCpu);
  book_.OnNotDelivered(kCpu, reasons::kBackendUnreachable, "503");
  EXPECT_EQ(Of(kCpu).state, CollectionState::kFailing);
  EXPECT_NE(Of(kCpu).last_delivered_ns, 0);
}

TEST_F(CollectionHealthTest, WithoutSamplingOnlyWhatNeedsItFails) {
  book_.SetSamplingUnavailable("CAP_BPF is missing");
  EXPECT_EQ(Of(kCpu).state, CollectionState::kFailing);
  EXPECT_EQ(Of(kCpu).reason, "SamplingUnavailable");
  EXPECT_EQ(Of(kCpu).message, "CAP_BPF is missing");
  EXPECT_EQ(Of(kMutex).state, CollectionState::kWaiting);
}

TEST_F(CollectionHealthTest, SamplingThatIsHeardAgainFailsNothing) {
  Changed();
  book_.SetSamplingUnavailable("no timer is heard");
  EXPECT_TRUE(Changed());
  book_.SetSamplingUnavailable("no timer is heard");
  EXPECT_FALSE(Changed());  // or each report would cause the next
  book_.SetSamplingUnavailable("");
  EXPECT_TRUE(Changed());
  EXPECT_EQ(Of(kCpu).state, CollectionState::kWaiting);
}

TEST_F(CollectionHealthTest, WhatStaysInForceKeepsItsHistoryAndTheRestIsForgotten) {
  book_.OnDelivered(kCpu);
  book_.OnDelivered(kMutex);
  book_.SetCollections({{.key = kCpu, .ebpf = true, .window = kWindow}});
  EXPECT_EQ(book_.Snapshot().size(), 1U);
  EXPECT_EQ(Of(kCpu).profiles_delivered, 1U);
  book_.OnDelivered(kMutex);  // of a push that was under way
  EXPECT_EQ(book_.Snapshot().size(), 1U);
  SetBoth();
  EXPECT_EQ(Of(kMutex).profiles_delivered, 0U);
}

TEST_F(CollectionHealthTest, ALongMessageIsCutBetweenCharacters) {
  std::string message = "x";
  for (int i = 0; i < 200; ++i)
    message += "é";
  book_.OnCollectFailed(kMutex, reasons::kHTTPError, message);
  const std::string cut = Of(kMutex).message;
  EXPECT_EQ(cut.size(), kMaxMessageBytes - 1);
  EXPECT_EQ(cut, message.substr(0, cut.size()));
}

TEST_F(CollectionHealthTest, OnlyNewsAreAChange) {
  EXPECT_TRUE(Changed());
  EXPECT_FALSE(Changed());
  book_.OnDelivered(kCpu);
  EXPECT_TRUE(Changed());
  book_.OnDelivered(kCpu);
  EXPECT_FALSE(Changed());
  book_.OnCollectFailed(kCpu, reasons::kTimeout, "1");
  EXPECT_TRUE(Changed());
  book_.OnCollectFailed(kCpu, reasons::kTimeout, "2");
  EXPECT_FALSE(Changed());
  book_.OnDelivered(kCpu);
  EXPECT_TRUE(Changed());
}

TEST_F(CollectionHealthTest, StopEndsAWait) {
  Changed();
  std::jthread waiter(
      [this](const std::stop_token& stop) { book_.AwaitChange(stop, std::chrono::hours(1)); });
  waiter.request_stop();
  waiter.join();
}

}  // namespace
}  // namespace flamefleet::agent
