// SPDX-License-Identifier: Apache-2.0
#include "agent/push/push_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace flamefleet::agent {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;

QueuedPush Named(const std::string& body, const std::string& backend = "a") {
  return {.backend = backend, .body = body};
}

std::vector<std::string> Bodies(const std::vector<QueuedPush>& pushes) {
  std::vector<std::string> bodies;
  for (const QueuedPush& push : pushes)
    bodies.push_back(push.body);
  return bodies;
}

class PushQueueTest : public ::testing::Test {
 protected:
  PushQueueTest() { queue_.SetBackends({"a", "b"}); }
  PushQueue::Clock::time_point In(std::chrono::nanoseconds time) {
    return PushQueue::Clock::now() + time;
  }
  PushQueue queue_{/*max_bytes=*/100, /*max_profiles=*/3};
};

TEST_F(PushQueueTest, TheOldestGoesFirstAcrossBackends) {
  queue_.Add(Named("1", "a"));
  queue_.Add(Named("2", "b"));
  queue_.Add(Named("3", "a"));
  EXPECT_EQ(queue_.Take({})->body, "1");
  EXPECT_EQ(queue_.Take({})->body, "2");
  EXPECT_EQ(queue_.Take({})->body, "3");
}

TEST_F(PushQueueTest, TheOldestMakesRoomWhenThereAreTooMany) {
  for (const char* body : {"1", "2", "3"})
    EXPECT_TRUE(queue_.Add(Named(body)).full.empty());
  EXPECT_THAT(Bodies(queue_.Add(Named("4")).full), ElementsAre("1"));
  EXPECT_EQ(queue_.Profiles(), 3U);
}

TEST_F(PushQueueTest, AsManyAsNeededMakeRoomForManyBytes) {
  queue_.Add(Named(std::string(40, 'x')));
  queue_.Add(Named(std::string(40, 'y')));
  EXPECT_EQ(queue_.Add(Named(std::string(90, 'z'))).full.size(), 2U);
  EXPECT_EQ(queue_.Bytes(), 90U);
}

TEST_F(PushQueueTest, AProfileLargerThanTheQueueIsRefusedItself) {
  EXPECT_EQ(queue_.Add(Named(std::string(101, 'x'))).full.size(), 1U);
  EXPECT_EQ(queue_.Profiles(), 0U);
}

TEST_F(PushQueueTest, WhatIsBeingSentCountsUntilItIsDone) {
  queue_.Add(Named("1"));
  const auto taken = queue_.Take({});
  EXPECT_EQ(queue_.Profiles(), 1U);
  EXPECT_FALSE(queue_.AwaitEmpty(std::chrono::milliseconds(1)));
  queue_.Done(*taken);
  EXPECT_TRUE(queue_.AwaitEmpty(seconds(0)) || queue_.AwaitEmpty(seconds(10)));
  EXPECT_EQ(queue_.Bytes(), 0U);
}

TEST_F(PushQueueTest, ABackendThatIsHeldBackHoldsUpNobodyElse) {
  queue_.Add(Named("1", "a"));
  queue_.Retry(*queue_.Take({}), In(hours(1)));
  queue_.Add(Named("2", "a"));
  queue_.Add(Named("3", "b"));
  EXPECT_EQ(queue_.Take({})->body, "3");
}

TEST_F(PushQueueTest, ARetryGoesBehindTheOthersAndIsStillTheOldestToGo) {
  queue_.Add(Named("1"));
  queue_.Add(Named("2"));
  queue_.Retry(*queue_.Take({}), In(seconds(0)));
  queue_.Add(Named("3"));
  EXPECT_THAT(Bodies(queue_.Add(Named("4")).full), ElementsAre("1"));
  EXPECT_EQ(queue_.Take({})->body, "2");
}

TEST_F(PushQueueTest, ProfilesOfABackendThatIsRemovedComeBack) {
  queue_.Add(Named("1", "a"));
  queue_.Add(Named("2", "b"));
  const auto sending = queue_.Take({});
  EXPECT_THAT(Bodies(queue_.SetBackends({"c"})), ElementsAre("2"));
  EXPECT_TRUE(queue_.Retry(*sending, In(seconds(0))).has_value());
  EXPECT_EQ(queue_.Profiles(), 0U);
  EXPECT_TRUE(queue_.Add(Named("3", "a")).unknown_backend.has_value());
}

TEST_F(PushQueueTest, AWaitingSenderEndsWhenStopIsRequested) {
  std::optional<QueuedPush> got = Named("x");
  std::jthread sender([&](const std::stop_token& stop) { got = queue_.Take(stop); });
  sender.request_stop();
  sender.join();
  EXPECT_FALSE(got.has_value());
}

}  // namespace
}  // namespace flamefleet::agent
