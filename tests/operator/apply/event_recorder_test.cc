// SPDX-License-Identifier: Apache-2.0
// EventRecorder against a server that keeps what it is sent; the real server's opinion of the
// events is in event_recorder_apiserver_test.cc.
#include "operator/apply/event_recorder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/http/server.h"
#include "tests/fakes/fake_clock.h"

namespace flamefleet {
namespace {

using nlohmann::json;

class EventRecorderTest : public testing::Test {
 protected:
  EventRecorderTest() {
    HttpServerOptions options;
    options.listen = "127.0.0.1:0";
    auto server = HttpServer::Create(options, [this](const HttpServerRequest& request) {
      MutexLock lock(&mutex_);
      if (code_ == 200) events_.push_back(json::parse(request.body));
      ++requests_;
      return HttpServerResponse{code_, "application/json", "{}", {}};
    });
    FF_CHECK(server.ok());
    server_ = *std::move(server);
    ClientConfig config;
    config.base_url = "http://127.0.0.1:" + std::to_string(server_->port());
    auto client = RestClient::Create(config, clock_, metrics_);
    FF_CHECK(client.ok());
    client_ = *std::move(client);
    recorder_ = std::make_unique<EventRecorder>(*client_, clock_, metrics_, "me");
  }

  void Say(const std::string& pod, const std::string& reason, const std::string& note) {
    recorder_->Record(kPods, {.ns = "shop", .name = pod, .uid = "uid-" + pod},
                      {true, reason, "Profile", note});
  }
  // Waits for as many requests; true when there are no more and no fewer.
  bool Requested(int count) {
    MutexLock lock(&mutex_);
    for (int waits = 0; requests_ < count && waits < 6000; ++waits)
      WaitFor(never_, mutex_, std::chrono::milliseconds(5));
    return requests_ == count;
  }
  int Requests() {
    MutexLock lock(&mutex_);
    return requests_;
  }
  json Last() {
    MutexLock lock(&mutex_);
    return events_.empty() ? json() : events_.back();
  }
  void Pass(std::chrono::nanoseconds time) { clock_.Advance(time.count()); }
  double Total(const std::string& result) {
    return metrics_
        .Counter("flamefleet_operator_events_total",
                 "What became of each event that was to be said about an object.",
                 {{"result", result}})
        .Value();
  }
  bool TotalBecomes(const std::string& result, double value) {
    MutexLock lock(&mutex_);
    for (int waits = 0; Total(result) < value && waits < 6000; ++waits)
      WaitFor(never_, mutex_, std::chrono::milliseconds(5));
    return Total(result) == value;
  }

  FakeClock clock_;
  Metrics metrics_;
  Mutex mutex_;
  CondVar never_;
  std::vector<json> events_;
  int requests_ = 0;
  std::atomic<int> code_ = 200;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<RestClient> client_;
  std::unique_ptr<EventRecorder> recorder_;
};

TEST(TokenBucket, LetsABurstPassAndThenOnePerInterval) {
  const std::chrono::nanoseconds interval(100);
  TokenBucket bucket(2, interval, 1000);
  EXPECT_TRUE(bucket.Take(1000));
  EXPECT_TRUE(bucket.Take(1000));
  EXPECT_FALSE(bucket.Take(1099));
  EXPECT_TRUE(bucket.Take(1100));
  EXPECT_FALSE(bucket.Take(1100));
  // However long nobody takes, never more than the burst.
  EXPECT_TRUE(bucket.Take(9000));
  EXPECT_TRUE(bucket.Take(9000));
  EXPECT_FALSE(bucket.Take(9000));
}

TEST_F(EventRecorderTest, WhatIsSaidAgainIsWrittenOnceUntilItsNoteChanges) {
  Say("p", "InvalidAnnotation", "one");
  ASSERT_TRUE(Requested(1));
  Say("p", "InvalidAnnotation", "one");
  Say("p", "InvalidAnnotation", "one");
  Pass(std::chrono::seconds(1));
  Say("p", "InvalidAnnotation", "two");
  ASSERT_TRUE(Requested(2));
  EXPECT_EQ(Last()["note"], "two");
  // The server lets no note change.
  EXPECT_NE(Last()["metadata"]["name"], events_.front()["metadata"]["name"]);
  EXPECT_FALSE(Last().contains("series"));
}

TEST_F(EventRecorderTest, WhatIsStillTrueIsWrittenAsASeriesBeforeTheServerForgetsIt) {
  Say("p", "InvalidAnnotation", "one");
  ASSERT_TRUE(Requested(1));
  Say("p", "InvalidAnnotation", "one");
  Pass(EventRecorder::kRefresh);
  Say("p", "InvalidAnnotation", "one");
  ASSERT_TRUE(Requested(2));
  EXPECT_EQ(Last()["series"]["count"], 3);
  EXPECT_EQ(Last()["metadata"]["name"], events_.front()["metadata"]["name"]);
  EXPECT_EQ(Last()["eventTime"], events_.front()["eventTime"]);
}

TEST_F(EventRecorderTest, AnotherReasonIsAnotherEvent) {
  Say("p", "InvalidAnnotation", "one");
  Say("p", "PortRequired", "two");
  ASSERT_TRUE(Requested(2));
  EXPECT_NE(events_[0]["metadata"]["name"], events_[1]["metadata"]["name"]);
}

TEST_F(EventRecorderTest, OneObjectDoesNotFloodTheServerAndHindersNoOther) {
  for (int i = 0; i < EventRecorder::kObjectBurst; ++i) {
    Say("loud", "InvalidAnnotation", std::to_string(i));
    ASSERT_TRUE(Requested(i + 1));
  }
  Say("loud", "InvalidAnnotation", "too much");
  ASSERT_TRUE(TotalBecomes("dropped_rate", 1));
  Say("quiet", "InvalidAnnotation", "mine");
  ASSERT_TRUE(Requested(EventRecorder::kObjectBurst + 1));
  EXPECT_EQ(Last()["note"], "mine");
  // What was too much is said when it may.
  Pass(EventRecorder::kObjectInterval);
  ASSERT_TRUE(Requested(EventRecorder::kObjectBurst + 2));
  EXPECT_EQ(Last()["note"], "too much");
}

TEST_F(EventRecorderTest, AServerThatIsAwayGetsItLater) {
  code_ = 500;
  Say("p", "InvalidAnnotation", "one");
  ASSERT_TRUE(Requested(1));
  code_ = 200;
  for (int waits = 0; Requests() < 2 && waits < 6000; ++waits) {
    Pass(std::chrono::seconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(Last()["note"], "one");
}

TEST_F(EventRecorderTest, WhatTheServerRefusesIsDroppedAndCounted) {
  code_ = 422;
  Say("p", "InvalidAnnotation", "one");
  EXPECT_TRUE(TotalBecomes("dropped_failed", 1));
  Pass(std::chrono::minutes(2));
  Say("p", "InvalidAnnotation", "one");
  EXPECT_TRUE(Requested(1));
}

TEST_F(EventRecorderTest, ANoteIsCutBetweenCharacters) {
  std::string note(EventRecorder::kMaxNote - 1, 'a');
  Say("p", "InvalidAnnotation", note + "é and more");
  ASSERT_TRUE(Requested(1));
  EXPECT_EQ(Last()["note"], note);
}

}  // namespace
}  // namespace flamefleet
