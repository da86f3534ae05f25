// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/work_queue.h"

#include <gtest/gtest.h>

#include <future>

#include "base/thread.h"
#include "tests/fakes/fake_clock.h"

namespace flamefleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WorkQueueTest : public testing::Test {
 protected:
  void Pass(std::chrono::nanoseconds time) { clock_.Advance(time.count()); }
  // How long until the key comes, in steps of a millisecond.
  milliseconds TimeUntilTaken(const std::string& key) {
    for (milliseconds waited{0}; waited < seconds(2000); ++waited) {
      if (const auto taken = queue_.TryTake()) {
        EXPECT_EQ(*taken, key);
        return waited;
      }
      Pass(milliseconds(1));
    }
    return milliseconds(-1);
  }

  FakeClock clock_;
  Metrics metrics_;
  WorkQueue queue_{clock_, metrics_, "test"};
};

TEST_F(WorkQueueTest, AKeyThatWaitsIsNotAddedTwice) {
  queue_.Add("a");
  queue_.Add("a");
  EXPECT_EQ(queue_.TryTake(), "a");
  queue_.Done("a");
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
}

TEST_F(WorkQueueTest, AKeyAddedWhileItIsProcessedRunsOnceMoreAfterDone) {
  queue_.Add("a");
  ASSERT_EQ(queue_.TryTake(), "a");
  queue_.Add("a");
  queue_.Add("a");
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
  queue_.Done("a");
  EXPECT_EQ(queue_.TryTake(), "a");
  queue_.Done("a");
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
}

TEST_F(WorkQueueTest, AClosedQueueKeepsNothing) {
  queue_.Add("waits");
  queue_.Add("in work");
  ASSERT_EQ(queue_.TryTake(), "in work");
  queue_.Add("in work");
  queue_.Close();
  queue_.Done("in work");
  queue_.Add("late");
  EXPECT_TRUE(queue_.Look(10).empty());
  queue_.Open();
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
  queue_.Add("new");
  EXPECT_EQ(queue_.TryTake(), "new");
}

TEST_F(WorkQueueTest, ALookShowsWorkFirstThenWhatIsDueNext) {
  queue_.Add("in work");
  ASSERT_TRUE(queue_.TryTake());
  queue_.AddAfterFailure("failed");
  queue_.Add("late", seconds(1));
  const auto items = queue_.Look(3);
  ASSERT_EQ(items.size(), 3U);
  EXPECT_TRUE(items[0].processing);
  EXPECT_EQ(items[1].key, "failed");
  EXPECT_EQ(items[1].failures, 1);
  EXPECT_EQ(items[2].due_in, seconds(1));
  EXPECT_EQ(queue_.Look(2).size(), 2U);
}

TEST_F(WorkQueueTest, WorkThatHangsIsSeenInTheMetrics) {
  queue_.Add("a");
  ASSERT_TRUE(queue_.TryTake());
  Pass(seconds(3));
  queue_.UpdateMetrics();
  const std::string text = metrics_.RenderText();
  EXPECT_NE(text.find("workqueue_longest_running_processor_seconds{name=\"test\"} 3\n"),
            std::string::npos);
  EXPECT_NE(text.find("workqueue_unfinished_work_seconds{name=\"test\"} 3\n"), std::string::npos);
}

TEST_F(WorkQueueTest, KeysComeInTheOrderInWhichTheyAreDue) {
  queue_.Add("late", milliseconds(20));
  queue_.Add("soon", milliseconds(10));
  Pass(milliseconds(20));
  EXPECT_EQ(queue_.TryTake(), "soon");
  EXPECT_EQ(queue_.TryTake(), "late");
}

TEST_F(WorkQueueTest, ABurstIsOneRunAtTheTimeOfItsFirst) {
  queue_.Add("a", milliseconds(100));
  Pass(milliseconds(90));
  queue_.Add("a", milliseconds(100));
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
  Pass(milliseconds(10));
  EXPECT_EQ(queue_.TryTake(), "a");
  queue_.Done("a");
  Pass(seconds(1));
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
}

TEST_F(WorkQueueTest, AnEarlierTimeReplacesALaterOne) {
  queue_.Add("a", seconds(100));
  queue_.Add("a", milliseconds(1));
  Pass(milliseconds(1));
  EXPECT_EQ(queue_.TryTake(), "a");
}

TEST_F(WorkQueueTest, TheBackOffOfAKeyDoublesUntilForget) {
  for (const int expected_ms : {5, 10, 20, 40}) {
    queue_.AddAfterFailure("a");
    EXPECT_EQ(TimeUntilTaken("a"), milliseconds(expected_ms));
    queue_.Done("a");
  }
  queue_.Forget("a");
  queue_.AddAfterFailure("a");
  EXPECT_EQ(TimeUntilTaken("a"), milliseconds(5));
}

TEST_F(WorkQueueTest, TheBackOffHasAnEnd) {
  for (int failures = 0; failures < 100; ++failures) {
    queue_.AddAfterFailure("a");
    Pass(WorkQueue::kMaxRetry);
    ASSERT_EQ(queue_.TryTake(), "a");
    queue_.Done("a");
  }
}

TEST_F(WorkQueueTest, ABackOffDuringProcessingStartsAtTheFailure) {
  queue_.Add("a");
  ASSERT_EQ(queue_.TryTake(), "a");
  queue_.AddAfterFailure("a");
  queue_.Done("a");
  EXPECT_EQ(queue_.TryTake(), std::nullopt);
  EXPECT_EQ(TimeUntilTaken("a"), milliseconds(5));
}

TEST_F(WorkQueueTest, AChangeDoesNotWaitForTheBackOff) {
  queue_.AddAfterFailure("a");
  queue_.Add("a");
  EXPECT_EQ(queue_.TryTake(), "a");
}

TEST_F(WorkQueueTest, TheFailureOfOneKeyDoesNotSlowAnother) {
  for (int i = 0; i < 10; ++i)
    queue_.AddAfterFailure("bad");
  queue_.Add("good");
  EXPECT_EQ(queue_.TryTake(), "good");
}

TEST(WorkQueue, TakeWakesForAKeyAndEndsWhenStopIsRequested) {
  Metrics metrics;
  WorkQueue queue(SystemClock(), metrics, "test");
  std::promise<std::optional<std::string>> first;
  std::optional<std::string> second = "unset";
  std::jthread worker = StartThread("worker", [&](const std::stop_token& stop) {
    first.set_value(queue.Take(stop));
    second = queue.Take(stop);
  });
  queue.Add("a");
  EXPECT_EQ(first.get_future().get(), "a");
  worker.request_stop();
  worker.join();
  EXPECT_EQ(second, std::nullopt);
}

}  // namespace
}  // namespace flamefleet
