// SPDX-License-Identifier: Apache-2.0
#include "base/queue.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/thread.h"

namespace flamefleet {
namespace {

using std::chrono::hours;

TEST(BoundedQueue, AFullQueueRefusesAndKeepsTheCallersValue) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  auto first = std::make_unique<int>(1);
  auto second = std::make_unique<int>(2);
  EXPECT_TRUE(queue.TryPush(first));
  EXPECT_FALSE(queue.TryPush(second));
  EXPECT_EQ(*second, 2);
}

TEST(BoundedQueue, TheOldestIsHandedBackWhenItHasToGo) {
  BoundedQueue<int> queue(2);
  EXPECT_FALSE(queue.PushDroppingOldest(1));
  EXPECT_FALSE(queue.PushDroppingOldest(2));
  EXPECT_EQ(queue.PushDroppingOldest(3), 1);
  EXPECT_EQ(queue.TryPop(), 2);
  EXPECT_EQ(queue.TryPop(), 3);
  EXPECT_EQ(queue.TryPop(), std::nullopt);
}

TEST(BoundedQueue, AWaitingConsumerEndsWhenStopIsRequested) {
  BoundedQueue<int> queue(1);
  std::optional<int> got = 1;
  std::jthread consumer = StartThread(
      "consumer", [&](const std::stop_token& stop) { got = queue.Pop(stop, hours(1)); });
  consumer.request_stop();
  consumer.join();
  EXPECT_EQ(got, std::nullopt);
}

}  // namespace
}  // namespace flamefleet
