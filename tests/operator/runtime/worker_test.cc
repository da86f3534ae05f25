// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/fakes/fake_clock.h"

namespace flamefleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FakeController final : public Controller {
 public:
  std::string name() const override { return "pool"; }
  Result<Outcome> Reconcile(const std::string& object, const std::stop_token&) override {
    reconciled.push_back(object);
    if (throws) throw std::runtime_error("not a number");
    return answer;
  }
  std::vector<std::string> reconciled;
  Result<Outcome> answer = Outcome{};
  bool throws = false;
};

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() { worker_.Register(controller_); }

  // Runs what is due now; how many keys that were.
  int RunDue() {
    int runs = 0;
    while (worker_.RunOnce({}))
      ++runs;
    return runs;
  }
  int RunAfter(std::chrono::nanoseconds time) {
    clock_.Advance(time.count());
    return RunDue();
  }

  FakeClock clock_;
  Metrics metrics_;
  WorkQueue queue_{clock_, metrics_, "test"};
  std::string seen_ = "10";  // version of every kind
  OwnWrites own_writes_{[this](const Resource&) { return seen_; }};
  Worker worker_{queue_, own_writes_, clock_, metrics_};
  FakeController controller_;
};

TEST_F(WorkerTest, TheControllerOfAKeyGetsTheRestOfIt) {
  queue_.Add("pool/a/b");
  EXPECT_EQ(RunDue(), 1);
  EXPECT_THAT(controller_.reconciled, ElementsAre("a/b"));
}

TEST_F(WorkerTest, WhatAnOutcomeConcernsIsLookedAtTooOnceForMany) {
  controller_.answer = Controller::Outcome{.concerns = {"pool/of-both"}};
  queue_.Add("pool/a");
  queue_.Add("pool/b");
  EXPECT_EQ(RunDue(), 2);
  controller_.answer = Controller::Outcome{};
  EXPECT_EQ(RunAfter(Worker::kConcernDelay), 1);
  EXPECT_THAT(controller_.reconciled, ElementsAre("a", "b", "of-both"));
}

TEST_F(WorkerTest, AnExceptionIsTheFailureOfItsObjectAlone) {
  controller_.throws = true;
  queue_.Add("pool/a");
  EXPECT_EQ(RunDue(), 1);
  controller_.throws = false;
  queue_.Add("pool/b");
  EXPECT_EQ(RunAfter(std::chrono::seconds(1)), 2);
  EXPECT_THAT(controller_.reconciled, testing::UnorderedElementsAre("a", "a", "b"));
  EXPECT_THAT(metrics_.RenderText(),
              HasSubstr("controller_runtime_reconcile_panics_total{controller=\"pool\"} 1"));
}

TEST_F(WorkerTest, AFailureIsTriedAgainWithBackOff) {
  controller_.answer = UnavailableError("no");
  queue_.Add("pool/a");
  EXPECT_EQ(RunDue(), 1);
  EXPECT_EQ(RunAfter(std::chrono::milliseconds(5)), 1);
  EXPECT_EQ(RunAfter(std::chrono::milliseconds(5)), 0);
  EXPECT_EQ(RunAfter(std::chrono::milliseconds(5)), 1);
}

TEST_F(WorkerTest, SuccessResetsTheBackOff) {
  controller_.answer = UnavailableError("no");
  queue_.Add("pool/a");
  RunDue();
  RunAfter(std::chrono::milliseconds(5));
  controller_.answer = Controller::Outcome{};
  EXPECT_EQ(RunAfter(std::chrono::milliseconds(10)), 1);
  EXPECT_EQ(RunAfter(std::chrono::hours(1)), 0);
  controller_.answer = UnavailableError("no");
  queue_.Add("pool/a");
  RunDue();
  EXPECT_EQ(RunAfter(std::chrono::milliseconds(5)), 1);
}

TEST_F(WorkerTest, WhatARetryDoesNotHelpIsTriedSeldom) {
  controller_.answer = InvalidArgumentError("bad");
  queue_.Add("pool/a");
  EXPECT_EQ(RunDue(), 1);
  EXPECT_EQ(RunAfter(std::chrono::minutes(4)), 0);
  EXPECT_EQ(RunAfter(std::chrono::minutes(1)), 1);
}

TEST_F(WorkerTest, ARecheckComesAtItsTime) {
  controller_.answer = Controller::Outcome{std::chrono::seconds(10)};
  queue_.Add("pool/a");
  EXPECT_EQ(RunDue(), 1);
  EXPECT_EQ(RunAfter(std::chrono::seconds(9)), 0);
  EXPECT_EQ(RunAfter(std::chrono::seconds(1)), 1);
}

TEST_F(WorkerTest, AKeyWaitsForItsOwnWriteAndIsNotJudgedBefore) {
  own_writes_.Begin("pool/a");
  own_writes_.Wrote(kAgentPools, "11");
  queue_.Add("pool/a");
  queue_.Add("pool/b");
  RunDue();
  EXPECT_THAT(controller_.reconciled, ElementsAre("b"));
  RunAfter(Worker::kUnseenRetry);
  EXPECT_THAT(controller_.reconciled, ElementsAre("b"));
  seen_ = "11";
  RunAfter(Worker::kUnseenRetry);
  EXPECT_THAT(controller_.reconciled, ElementsAre("b", "a"));
}

TEST_F(WorkerTest, EveryResultIsCountedAndStartsAtZero) {
  const auto text = [this] { return metrics_.RenderText(); };
  for (const char* result : {"success", "error", "requeue", "requeue_after"}) {
    EXPECT_THAT(text(),
                HasSubstr("controller_runtime_reconcile_total{controller=\"pool\",result=\"" +
                          std::string(result) + "\"} 0"));
  }
  controller_.answer = InvalidArgumentError("bad");
  queue_.Add("pool/a");
  RunDue();
  EXPECT_THAT(text(), HasSubstr("controller_runtime_terminal_reconcile_errors_total{controller="
                                "\"pool\"} 1"));
}

}  // namespace
}  // namespace flamefleet
